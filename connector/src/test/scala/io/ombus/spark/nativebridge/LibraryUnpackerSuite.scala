package io.ombus.spark.nativebridge

import java.nio.file.{Files, LinkOption, Path}
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.{Callable, Executors}

import scala.jdk.CollectionConverters._

class LibraryUnpackerSuite extends NativeTestSupport {

  private val content = Array.tabulate[Byte](100000)(_.toByte)

  private def unpack(directory: Path): Path = LibraryUnpacker.unpack(content, "1.2.3", directory)

  private def permissions(path: Path): String = PosixFilePermissions.toString(Files.getPosixFilePermissions(path))

  private def inode(path: Path): AnyRef = Files.getAttribute(path, "unix:ino", LinkOption.NOFOLLOW_LINKS)

  directory.test("unpacks into a directory that is this user's alone") { root =>
    val file = unpack(root.resolve("new/private"))
    assertEquals(permissions(file.getParent), "rwx------")
    assertEquals(permissions(file), "rw-------")
    assertEquals(Files.readAllBytes(file).toSeq, content.toSeq)
    assert(file.getFileName.toString.startsWith("libombus-1.2.3-"), file)
  }

  directory.test("unpacks once per version and content") { root =>
    val first = unpack(root.resolve("lib"))
    val firstInode = inode(first)
    assertEquals(unpack(root.resolve("lib")), first)
    assertEquals(inode(first), firstInode)
    assertNotEquals(LibraryUnpacker.unpack(content, "1.2.4", root.resolve("lib")), first)
    assertNotEquals(LibraryUnpacker.unpack(content.reverse, "1.2.3", root.resolve("lib")), first)
  }

  directory.test("replaces a damaged file") { root =>
    val file = unpack(root.resolve("lib"))
    Files.write(file, content.take(10))
    assertEquals(unpack(root.resolve("lib")), file)
    assertEquals(Files.readAllBytes(file).toSeq, content.toSeq)
  }

  directory.test("replaces a link that stands in the file's place, and leaves its target alone") { root =>
    val file = unpack(root.resolve("lib"))
    val elsewhere = Files.write(root.resolve("elsewhere"), content)
    Files.delete(file)
    Files.createSymbolicLink(file, elsewhere)
    unpack(root.resolve("lib"))
    assert(!Files.isSymbolicLink(file))
    assert(Files.exists(elsewhere))
  }

  directory.test("refuses a directory that others may write") { root =>
    val open = Files.createDirectory(root.resolve("open"))
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"))
    assertRefused(open.toString, "other users may write", NativeLibrary.UnpackDirectoryProperty)(unpack(open))
  }

  directory.test("refuses a directory of another user") { root =>
    // Root owns /usr; root itself can give a directory away.
    val foreign = if (Files.getOwner(root).getName == "root") {
      Files.setAttribute(Files.createDirectory(root.resolve("foreign")), "unix:uid", 54321)
    } else Path.of("/usr")
    assertRefused(foreign.toString, "another user")(unpack(foreign))
  }

  directory.test("refuses a link or a file in the directory's place") { root =>
    val real = Files.createDirectory(root.resolve("real"))
    assertRefused("not a directory")(unpack(Files.createSymbolicLink(root.resolve("link"), real)))
    assertRefused("not a directory")(unpack(Files.createFile(root.resolve("file"))))
  }

  test("says so when the directory cannot be written") {
    assertRefused("cannot unpack libombus into /proc/ombus", NativeLibrary.UnpackDirectoryProperty) {
      unpack(Path.of("/proc/ombus"))
    }
  }

  directory.test("threads that unpack together agree and leave one file") { root =>
    val pool = Executors.newFixedThreadPool(8)
    try {
      val task: Callable[Path] = () => unpack(root.resolve("lib"))
      val files = pool.invokeAll(Seq.fill(32)(task).asJava).asScala.map(_.get)
      assertEquals(files.toSet.size, 1)
    } finally pool.shutdown()
    assertEquals(Files.list(root.resolve("lib")).count(), 1L)
  }
}
