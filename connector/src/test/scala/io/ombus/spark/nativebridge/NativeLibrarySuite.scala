package io.ombus.spark.nativebridge

import java.nio.file.{Files, Path}

import NativeLibrary.{PathProperty, PathVariable}

class NativeLibrarySuite extends NativeTestSupport {

  directory.test("loads the library inside the jar and calls it") { root =>
    val library = NativeLibrary.open(unpackedLibrary(root))
    assertEquals(library.version, NativeLibrary.connectorVersion)
    assert(library.errorString(-804).contains("power of two"), library.errorString(-804))
    assertEquals(library.errorString(-1), "unknown error")
  }

  test("the connector's version is the tree's") {
    assertEquals(NativeLibrary.connectorVersion, Files.readString(Path.of("../VERSION")).trim)
  }

  test("the instance of the JVM is loaded once") {
    assert(NativeLibrary.instance eq NativeLibrary.instance)
    assertEquals(NativeLibrary.instance.version, NativeLibrary.connectorVersion)
  }

  directory.test("the property goes before the environment variable, and that before the jar") { root =>
    val byProperty = Files.createFile(root.resolve("by-property.so"))
    val byVariable = Files.createFile(root.resolve("by-variable.so"))
    val property = Map(PathProperty -> byProperty.toString).get _
    val variable = Map(PathVariable -> byVariable.toString).get _
    assertEquals(NativeLibrary.locate(property, variable), byProperty)
    assertEquals(NativeLibrary.locate(noneSet, variable), byVariable)
    assert(unpackedLibrary(root).startsWith(root.resolve("unpacked")))
  }

  directory.test("a directory that holds libombus.so may be named") { root =>
    val file = Files.createFile(root.resolve("libombus.so"))
    assertEquals(NativeLibrary.locate(Map(PathProperty -> root.toString).get, noneSet), file)
  }

  directory.test("an empty name counts as none") { root =>
    val file = Files.createFile(root.resolve("by-variable.so"))
    val variable = Map(PathVariable -> file.toString).get _
    assertEquals(NativeLibrary.locate(Map(PathProperty -> "").get, variable), file)
  }

  directory.test("refuses a missing file and says who named it") { root =>
    val missing = root.resolve("missing.so").toString
    assertRefused(PathProperty, missing, "does not exist") {
      NativeLibrary.locate(Map(PathProperty -> missing).get, noneSet)
    }
    assertRefused(PathVariable, missing, "does not exist") {
      NativeLibrary.locate(noneSet, Map(PathVariable -> missing).get)
    }
  }

  directory.test("refuses what is not a library") { root =>
    val text = Files.writeString(root.resolve("text.so"), "this is a text, long enough for a header")
    assertRefused(text.toString, "not a shared library")(NativeLibrary.open(text))
    val empty = Files.createFile(root.resolve("empty.so"))
    assertRefused(empty.toString, "not a shared library")(NativeLibrary.open(empty))
    assertRefused(root.toString, "cannot read")(NativeLibrary.open(root))
  }

  directory.test("refuses a library that was cut short") { root =>
    val whole = Files.readAllBytes(unpackedLibrary(root))
    val cut = Files.write(root.resolve("cut.so"), whole.take(40))
    assertRefused("cannot load", cut.toString, "file too short")(NativeLibrary.open(cut))
  }

  directory.test("refuses a library of another architecture by its name") { root =>
    val bytes = Files.readAllBytes(unpackedLibrary(root))
    val (foreignMachine, foreignName) = if (Platform.arch == "aarch64") (62, "x86_64") else (183, "aarch64")
    bytes(18) = foreignMachine.toByte
    val foreign = Files.write(root.resolve("foreign.so"), bytes)
    assertRefused(foreign.toString, s"built for $foreignName", s"runs on ${Platform.arch}")(NativeLibrary.open(foreign))
  }

  test("refuses a library that is not libombus") {
    val other = Path.of(System.getProperty("java.home"), "lib", "libzip.so")
    assertRefused(other.toString, "not libombus", "om_bus_version")(NativeLibrary.open(other))
  }

  directory.test("refuses another version and names both") { root =>
    val file = unpackedLibrary(root)
    assertRefused(file.toString, s"libombus ${NativeLibrary.connectorVersion}", "connector is 9.9.9", "unset") {
      NativeLibrary.open(file, expectedVersion = "9.9.9")
    }
  }

  test("a failed mapping is explained as a noexec mount") {
    val file = Path.of("/mnt/noexec/libombus.so")
    val dlerror = s"$file: failed to map segment from shared object"
    val text = NativeLibrary.explain(file, dlerror)
    assert(text.contains("/mnt/noexec may be mounted noexec"), text)
    assert(text.contains(NativeLibrary.UnpackDirectoryProperty), text)
  }
}
