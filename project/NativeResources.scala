import java.util.Locale

import sbt._

/** What the connector carries of the native side: libombus for this machine's platform, and the version both must have. */
object NativeResources {

  def generate(library: File, version: String, resources: File): Seq[File] = {
    if (!library.isFile) sys.error(s"$library is missing: run `make native` first")
    val libraryCopy = resources / "ombus" / "native" / platform / "libombus.so"
    val properties = resources / "ombus" / "build.properties"
    if (!libraryCopy.isFile || !IO.readBytes(libraryCopy).sameElements(IO.readBytes(library)))
      IO.copyFile(library, libraryCopy)
    IO.write(properties, s"version=$version\n")
    Seq(libraryCopy, properties)
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
