import sbtassembly.AssemblyPlugin.autoImport._
import sbtassembly.PathList

/** How jnr-ffi goes into the jar without meeting another copy of it on a cluster's class path. */
object Shading {

  /** com.kenai.jffi keeps its name: its JNI stub library looks its classes up by that name. It has a
    * stable API, and everything that calls it (jnr, asm) is ours alone.
    */
  val rules = Seq(
    ShadeRule.rename("jnr.**" -> "io.ombus.shaded.jnr.@1").inAll,
    ShadeRule.rename("org.objectweb.asm.**" -> "io.ombus.shaded.asm.@1").inAll
  )

  val mergeStrategy: String => sbtassembly.MergeStrategy = {
    case PathList("module-info.class")                                                         => MergeStrategy.discard
    case PathList("META-INF", "versions", _, "module-info.class")                              => MergeStrategy.discard
    case PathList("META-INF", "maven", _*)                                                     => MergeStrategy.discard
    case PathList("META-INF", name) if name.startsWith("LICENSE") || name.startsWith("NOTICE") =>
      MergeStrategy.rename
    case PathList("META-INF", "MANIFEST.MF") => MergeStrategy.discard
    case _                                   => MergeStrategy.deduplicate
  }
}
