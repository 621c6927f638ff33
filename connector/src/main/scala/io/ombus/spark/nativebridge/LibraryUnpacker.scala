package io.ombus.spark.nativebridge

import java.io.IOException
import java.nio.file.{FileAlreadyExistsException, Files, LinkOption, Path, StandardCopyOption}
import java.nio.file.attribute.{PosixFilePermission, PosixFilePermissions}
import java.security.MessageDigest
import java.util.HexFormat

import scala.jdk.CollectionConverters._

/** Puts the library that the jar carries where dlopen can reach it: once per version, into a directory that only this
  * user can write.
  *
  * The file's name holds its version and checksum, and it appears by a rename. So JVMs that start together need no lock:
  * each finds either nothing or the whole file, and if two write, they write the same bytes. A file that does not match
  * its checksum (cut short, or changed) is replaced; a JVM that has the old one mapped keeps it.
  */
private[nativebridge] object LibraryUnpacker {

  private val privateDirectory = PosixFilePermissions.fromString("rwx------")
  private val privateFile = PosixFilePermissions.fromString("rw-------")
  private val writableByOthers = Set(PosixFilePermission.GROUP_WRITE, PosixFilePermission.OTHERS_WRITE)

  /** Where to unpack unless the user names a directory: like /tmp/ombus-1000. */
  def defaultDirectory: Path = Path.of(System.getProperty("java.io.tmpdir"), s"ombus-$ownUid")

  /** @return the unpacked file, its content equal to `content` */
  def unpack(content: Array[Byte], version: String, directory: Path): Path =
    try {
      val checksum = sha256(content)
      val target = preparePrivate(directory).resolve(s"libombus-$version-${checksum.take(16)}.so")
      if (!isIntact(target, checksum)) write(content, target)
      if (!isIntact(target, checksum)) fail(s"$target changed while it was unpacked", directory)
      target
    } catch {
      case e: IOException => fail(e.toString, directory, e)
    }

  private def preparePrivate(directory: Path): Path = {
    Option(directory.toAbsolutePath.getParent).foreach(Files.createDirectories(_))
    try Files.createDirectory(directory, PosixFilePermissions.asFileAttribute(privateDirectory))
    catch { case _: FileAlreadyExistsException => } // the common case; whose it is, is checked now
    if (!Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) fail("it is not a directory", directory)
    if (uidOf(directory) != ownUid) fail(s"it belongs to another user (uid ${uidOf(directory)})", directory)
    val permissions = Files.getPosixFilePermissions(directory, LinkOption.NOFOLLOW_LINKS).asScala
    if (permissions.exists(writableByOthers)) fail("other users may write into it (chmod 700 it)", directory)
    directory
  }

  private def write(content: Array[Byte], target: Path): Unit = {
    val attributes = PosixFilePermissions.asFileAttribute(privateFile)
    val draft = Files.createTempFile(target.getParent, "unpacking-", ".tmp", attributes)
    try {
      Files.write(draft, content)
      Files.move(draft, target, StandardCopyOption.ATOMIC_MOVE)
    } finally Files.deleteIfExists(draft)
  }

  private def isIntact(file: Path, checksum: String): Boolean =
    Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) && uidOf(file) == ownUid &&
      sha256(Files.readAllBytes(file)) == checksum

  private def sha256(bytes: Array[Byte]): String =
    HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes))

  /** The JDK has no getuid, but the kernel gives a process its own /proc entry. */
  private lazy val ownUid: Int = Files.getAttribute(Path.of("/proc/self"), "unix:uid").asInstanceOf[Int]

  private def uidOf(path: Path): Int =
    Files.getAttribute(path, "unix:uid", LinkOption.NOFOLLOW_LINKS).asInstanceOf[Int]

  private def fail(reason: String, directory: Path, cause: Throwable = null): Nothing =
    throw new NativeLibraryException(
      s"cannot unpack libombus into $directory: $reason. Name another directory with " +
        s"-D${NativeLibrary.UnpackDirectoryProperty}=DIR, or an unpacked library with -D${NativeLibrary.PathProperty}=FILE",
      cause
    )
}
