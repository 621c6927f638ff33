package io.ombus.spark.nativebridge

/** libombus could not be found, unpacked, loaded or used; the message says which and what to do. */
final class NativeLibraryException(message: String, cause: Throwable = null) extends RuntimeException(message, cause)
