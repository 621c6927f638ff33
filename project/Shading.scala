import sbtassembly.AssemblyPlugin.autoImport._
import sbtassembly.PathList

/** How jnr-ffi goes into the jar without meeting another copy of it on a cluster's class path. */
object Shading {

  /** com.kenai.jffi keeps its name: its JNI stub library looks its classes up by that name. It has a
    * stable API, and everything that calls it (jnr, asm) is ours alone.
    */
  val rules = Seq(
    ShadeRule.rename("jnr.**" -> "io.ombus.shaded.jnr.@1").inAll,
    ShadeRule.rename("com.kenai.jnr.**" -> "io.ombus.shaded.kenai.jnr.@1").inAll,
    ShadeRule.rename("org.objectweb.asm.**" -> "io.ombus.shaded.asm.@1").inAll
  )

  val mergeStrategy: String => sbtassembly.MergeStrategy = {
    // libombus runs on Linux only, so jffi's stub libraries for other systems are of no use.
    case PathList("jni", platform, _*) if !platform.endsWith("-Linux") => MergeStrategy.discard
    case path if path.endsWith("module-info.class")                    => MergeStrategy.discard
    case PathList("META-INF", "maven", _*)                             => MergeStrategy.discard
    case PathList("META-INF", "MANIFEST.MF")                           => MergeStrategy.discard
    // The licences of what is shaded are told in our own NOTICE.
    case PathList("META-INF", "LICENSE" | "NOTICE") => MergeStrategy.first
    case _                                          => MergeStrategy.deduplicate
  }
}
