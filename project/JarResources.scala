import java.util.Locale

import sbt._

/** What the connector's jar carries beside classes: libombus for this machine, the version that both must have, LICENSE. */
object JarResources {

  def generate(library: File, version: String, license: File, resources: File): Seq[File] = {
    if (!library.isFile) sys.error(s"$library is missing: run `make native` first")
    val properties = resources / "ombus" / "build.properties"
    if (!properties.isFile || IO.read(properties) != s"version=$version\n") IO.write(properties, s"version=$version\n")
    Seq(
      copy(library, resources / "ombus" / "native" / platform / "libombus.so"),
      copy(license, resources / "META-INF" / "LICENSE"),
      properties
    )
  }

  /** Leaves an equal file alone, so that sbt sees no change and the jar stays as it is. */
  private def copy(from: File, to: File): File = {
    if (!to.isFile || !IO.readBytes(to).sameElements(IO.readBytes(from))) IO.copyFile(from, to)
    to
  }

  /** The same words as `io.ombus.spark.nativebridge.Platform` uses when it looks for the library. */
  private def platform: String = {
    val arch = sys.props("os.arch") match {
      case "amd64" => "x86_64"
      case other   => other
    }
    s"${sys.props("os.name").toLowerCase(Locale.ROOT)}-$arch"
  }
}
