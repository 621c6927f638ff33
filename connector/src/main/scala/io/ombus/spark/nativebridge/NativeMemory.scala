package io.ombus.spark.nativebridge

import java.nio.charset.StandardCharsets

import org.apache.spark.unsafe.{Platform => Unsafe}

/** Memory outside the heap for what libombus fills: 8-byte words at a fixed address until it is freed. */
private[nativebridge] final class NativeMemory(val sizeBytes: Long) {
  val address: Long = Unsafe.allocateMemory(sizeBytes)
  clear()

  def clear(): Unit = Unsafe.setMemory(address, 0.toByte, sizeBytes)
  def long(offset: Long): Long = Unsafe.getLong(null, checked(offset, 8))
  def int(offset: Long): Int = Unsafe.getInt(null, checked(offset, 4))
  def byte(offset: Long): Byte = Unsafe.getByte(null, checked(offset, 1))
  def putLong(offset: Long, value: Long): Unit = Unsafe.putLong(null, checked(offset, 8), value)
  def putInt(offset: Long, value: Int): Unit = Unsafe.putInt(null, checked(offset, 4), value)
  def putByte(offset: Long, value: Byte): Unit = Unsafe.putByte(null, checked(offset, 1), value)
  def free(): Unit = Unsafe.freeMemory(address)

  private def checked(offset: Long, width: Int): Long = {
    if (offset < 0 || offset + width > sizeBytes) throw new IndexOutOfBoundsException(s"$offset of $sizeBytes")
    address + offset
  }
}

private[nativebridge] object NativeMemory {

  def using[T](sizeBytes: Long)(body: NativeMemory => T): T = {
    val memory = new NativeMemory(sizeBytes)
    try body(memory)
    finally memory.free()
  }

  /** A C string. Paths are UTF-8 on every Linux that matters, whatever the JVM's default charset says. */
  def text(value: String): Array[Byte] = value.getBytes(StandardCharsets.UTF_8) :+ 0.toByte
}
