package io.ombus.spark.nativebridge

/** What [[AssembledJarSuite]] runs in JVMs of their own. */
object PrintNativeLibrary {
  def main(arguments: Array[String]): Unit = {
    val library = NativeLibrary.instance
    println(s"${library.version} ${library.path} ${library.errorString(-804)}")
  }
}
