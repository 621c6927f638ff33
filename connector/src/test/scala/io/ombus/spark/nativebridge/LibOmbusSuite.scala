package io.ombus.spark.nativebridge

import munit.FunSuite

class LibOmbusSuite extends FunSuite {

  /** jnr-ffi 2.2.19 crashed the JVM in its own machine code for om_log_limit(JJJJJJ)I. */
  test("a function with more parameters than registers takes an array, so that jnr-ffi makes no stub of its own") {
    classOf[LibOmbus].getMethods.filter(_.getParameterCount > 4).foreach { method =>
      assert(method.getParameterTypes.exists(_.isArray), s"$method")
    }
  }

  test("every function is in the library") {
    val library = com.kenai.jffi.Library.openLibrary(NativeLibrary.instance.path.toString, com.kenai.jffi.Library.LAZY)
    classOf[LibOmbus].getMethods.foreach { method =>
      assert(library.getSymbolAddress(method.getName) != 0, s"${method.getName} is not exported")
    }
  }
}
