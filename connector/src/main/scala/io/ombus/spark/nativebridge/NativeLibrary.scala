package io.ombus.spark.nativebridge

import java.nio.file.{Files, Path}
import java.util.Properties

import scala.util.control.NonFatal

import com.kenai.jffi.Library
import jnr.ffi.LibraryLoader
import org.slf4j.LoggerFactory

/** libombus, loaded and of the connector's own version. */
final class NativeLibrary private (val path: Path, private[nativebridge] val functions: LibOmbus) {

  def version: String = functions.om_bus_version()

  /** What a negative result of a libombus function means. */
  def errorString(code: Int): String = functions.om_bus_error_string(code)

  /** Passes a good result on; a negative one becomes an exception with libombus' own words. */
  private[nativebridge] def check(result: Long): Long = {
    if (result < 0) throw failure(result.toInt)
    result
  }

  private[nativebridge] def check(result: Int): Int = check(result.toLong).toInt

  private[nativebridge] def failure(code: Int): OmbusNativeException = {
    val name = Option(functions.om_bus_error_name(code)).getOrElse(s"error $code")
    new OmbusNativeException(code, name, functions.om_bus_error_string(code), functions.om_bus_last_error())
  }
}

/** Finds libombus and loads it. The first of these that is there decides; a bad one is an error, never a reason to try
  * the next, so that nobody runs another library than the one they named:
  *
  *   1. the system property `ombus.library.path`,
  *   1. the environment variable `OMBUS_LIBRARY_PATH`, both a file, or a directory that holds `libombus.so`,
  *   1. the copy inside the jar, unpacked into `ombus.library.unpack.dir` or a directory of this user under the JVM's
  *      temporary directory.
  */
object NativeLibrary {

  val PathProperty = "ombus.library.path"
  val PathVariable = "OMBUS_LIBRARY_PATH"
  val UnpackDirectoryProperty = "ombus.library.unpack.dir"

  private val log = LoggerFactory.getLogger(classOf[NativeLibrary])

  /** The connector's version, which libombus must have too. */
  lazy val connectorVersion: String = {
    val properties = new Properties
    val in = resource("ombus/build.properties").getOrElse(
      throw new NativeLibraryException("the connector's jar is incomplete: it has no ombus/build.properties")
    )
    try properties.load(in)
    finally in.close()
    properties.getProperty("version")
  }

  /** The library, loaded on first use and once per JVM; a failed load is tried again by the next caller. */
  lazy val instance: NativeLibrary = {
    val library = open(locate(sys.props.get, sys.env.get))
    log.info(s"libombus ${library.version} loaded from ${library.path}")
    library
  }

  /** The file to load, unpacked if need be. */
  private[nativebridge] def locate(property: String => Option[String], variable: String => Option[String]): Path = {
    def named(how: String, value: Option[String]): Option[Path] = value.filter(_.nonEmpty).map { text =>
      val path = Path.of(text).toAbsolutePath
      val file = if (Files.isDirectory(path)) path.resolve("libombus.so") else path
      if (!Files.exists(file)) throw new NativeLibraryException(s"$how names $file, which does not exist")
      file
    }
    named(s"the system property $PathProperty", property(PathProperty))
      .orElse(named(s"the environment variable $PathVariable", variable(PathVariable)))
      .getOrElse {
        val directory = property(UnpackDirectoryProperty).filter(_.nonEmpty).map(Path.of(_).toAbsolutePath)
        LibraryUnpacker.unpack(bundled(), connectorVersion, directory.getOrElse(LibraryUnpacker.defaultDirectory))
      }
  }

  /** Loads a file and makes sure that it is libombus of the version asked for. */
  private[nativebridge] def open(file: Path, expectedVersion: String = connectorVersion): NativeLibrary = {
    Platform.requireLoadable(file)
    val functions = load(file)
    val found =
      try functions.om_bus_version()
      catch {
        case e: UnsatisfiedLinkError =>
          throw new NativeLibraryException(s"$file is not libombus: it has no function om_bus_version", e)
      }
    if (found != expectedVersion)
      throw new NativeLibraryException(
        s"$file is libombus $found, but the connector is $expectedVersion. Use a jar and a library of one release: " +
          s"unset $PathProperty and $PathVariable to use the library inside the jar"
      )
    new NativeLibrary(file, functions)
  }

  private def load(file: Path): LibOmbus =
    try {
      // After a failed dlopen jnr-ffi tries other names and reports only the last one's error: ask jffi for the first.
      if (Library.openLibrary(file.toString, Library.LAZY | Library.LOCAL) == null)
        throw new UnsatisfiedLinkError(Library.getLastError)
      LibraryLoader.create(classOf[LibOmbus]).failImmediately().load(file.toString)
    } catch {
      case e @ (_: LinkageError | NonFatal(_)) => throw new NativeLibraryException(explain(file, e.getMessage), e)
    }

  /** Adds to dlopen's message what to do about it. */
  private[nativebridge] def explain(file: Path, reason: String): String = {
    val remedy =
      if (reason.contains("failed to map segment"))
        s". ${file.getParent} may be mounted noexec: name another directory with -D$UnpackDirectoryProperty=DIR"
      else if (reason.contains("jffi"))
        ". jffi unpacks a library of its own into the temporary directory, which must be writable and not noexec: " +
          "name another with -Djffi.extract.dir=DIR"
      else ""
    s"cannot load $file: $reason$remedy"
  }

  private def bundled(): Array[Byte] = {
    val place = s"ombus/native/${Platform.name}/libombus.so"
    val in = resource(place).getOrElse(
      throw new NativeLibraryException(
        s"the connector's jar has no libombus for ${Platform.name}: build it on such a machine and name it with " +
          s"-D$PathProperty=FILE or $PathVariable"
      )
    )
    try in.readAllBytes()
    finally in.close()
  }

  private def resource(name: String) = Option(getClass.getClassLoader.getResourceAsStream(name))
}
