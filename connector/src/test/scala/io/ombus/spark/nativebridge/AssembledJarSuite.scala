package io.ombus.spark.nativebridge

import java.io.File
import java.nio.file.{Files, Path}
import java.util.jar.JarFile

import scala.jdk.CollectionConverters._

import org.slf4j.Logger

/** The jar as users get it, in JVMs that have nothing else of the build on their class path. */
class AssembledJarSuite extends NativeTestSupport {

  private val jar = Path.of(System.getProperty("ombus.test.jar"))

  private def placeOf(aClass: Class[_]): String =
    Path.of(aClass.getProtectionDomain.getCodeSource.getLocation.toURI).toString

  private val classPath =
    Seq(jar.toString, placeOf(PrintNativeLibrary.getClass), placeOf(classOf[Seq[_]]), placeOf(classOf[Logger]))

  private def start(jvmOptions: Seq[String], environment: (String, String)*): Process = {
    val java = Path.of(System.getProperty("java.home"), "bin", "java").toString
    val command = Seq(java, "-cp", classPath.mkString(File.pathSeparator)) ++ jvmOptions :+
      "io.ombus.spark.nativebridge.PrintNativeLibrary"
    val builder = new ProcessBuilder(command.asJava).redirectErrorStream(true)
    environment.foreach { case (name, value) => builder.environment.put(name, value) }
    builder.start()
  }

  private def finish(process: Process): (Int, String) = {
    val output = new String(process.getInputStream.readAllBytes())
    (process.waitFor(), output)
  }

  directory.test("JVMs that start together all load the one unpacked copy") { root =>
    val unpacked = root.resolve("unpacked")
    val options = Seq(s"-D${NativeLibrary.UnpackDirectoryProperty}=$unpacked")
    val results = Seq.fill(3)(start(options)).map(finish)
    results.foreach { case (exitCode, output) =>
      assertEquals(exitCode, 0, output)
      assert(output.contains(s"${NativeLibrary.connectorVersion} $unpacked/libombus-"), output)
      assert(output.contains("power of two"), output)
    }
    assertEquals(Files.list(unpacked).count(), 1L)
  }

  directory.test("the environment variable names the library") { root =>
    val named = Files.copy(unpackedLibrary(root), root.resolve("named.so"))
    val (exitCode, output) = finish(start(Nil, NativeLibrary.PathVariable -> named.toString))
    assertEquals(exitCode, 0, output)
    assert(output.contains(s"${NativeLibrary.connectorVersion} $named "), output)
  }

  directory.test("a bad library ends in a message, not in a fall-back") { root =>
    val bad = Files.writeString(root.resolve("bad.so"), "not a library")
    val (exitCode, output) = finish(start(Seq(s"-D${NativeLibrary.PathProperty}=$bad")))
    assertNotEquals(exitCode, 0, output)
    assert(output.contains(s"$bad is not a shared library"), output)
  }

  test("jffi's temporary directory that cannot be used is named as the cause") {
    val options = Seq("-Djffi.extract.dir=/proc/ombus", "-Djava.io.tmpdir=/proc/ombus")
    val library = s"-D${NativeLibrary.PathProperty}=${NativeLibrary.instance.path}"
    val (exitCode, output) = finish(start(options :+ library))
    assertNotEquals(exitCode, 0, output)
    assert(output.contains("-Djffi.extract.dir=DIR"), output)
  }

  test("holds nothing that could meet another copy on a cluster's class path, but jffi") {
    val packages = new JarFile(jar.toFile).stream.iterator.asScala
      .map(_.getName)
      .filter(_.endsWith(".class"))
      .map(name => name.take(name.lastIndexOf('/')))
      .toSet
    val expected = Seq("io/ombus/spark", "io/ombus/shaded", "com/kenai/jffi")
    assertEquals(packages.filterNot(name => expected.exists(name.startsWith)), Set.empty[String])
  }
}
