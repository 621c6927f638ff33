package io.ombus.spark.nativebridge

import java.nio.file.{Files, Path}
import java.util.Comparator

import munit.FunSuite

/** Temporary directories, and one way to expect a refusal. */
abstract class NativeTestSupport extends FunSuite {

  val directory: FunFixture[Path] = FunFixture(
    _ => Files.createTempDirectory("ombus-test-"),
    root => Files.walk(root).sorted(Comparator.reverseOrder[Path]()).forEach(Files.delete(_))
  )

  /** The body must be refused with a message that holds all these words. */
  def assertRefused(words: String*)(body: => Any): Unit = {
    val message = intercept[NativeLibraryException](body).getMessage
    words.foreach(word => assert(message.contains(word), s"`$word` is missing in: $message"))
  }

  /** The library of this build, as the connector unpacks it. */
  def unpackedLibrary(directory: Path): Path =
    NativeLibrary.locate(
      Map(NativeLibrary.UnpackDirectoryProperty -> directory.resolve("unpacked").toString).get,
      noneSet
    )

  val noneSet: String => Option[String] = _ => None
}
