package io.ombus.spark.nativebridge

import java.io.{DataInputStream, IOException}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.file.{Files, Path}
import java.util.Locale

/** What kind of machine this is, in the words that the build uses for the library's place in the jar. */
private[nativebridge] object Platform {

  val os: String = System.getProperty("os.name").toLowerCase(Locale.ROOT)

  val arch: String = System.getProperty("os.arch") match {
    case "amd64" => "x86_64"
    case other   => other
  }

  val name: String = s"$os-$arch"

  /** The machines of ELF's `e_machine` that anyone is likely to meet. */
  private val elfMachines = Map(3 -> "x86", 40 -> "arm", 62 -> "x86_64", 183 -> "aarch64", 243 -> "riscv64")

  private val elfMachineOffset = 18

  /** Refuses a file that is not a shared library for this machine. dlopen would refuse it too, but for a foreign machine
    * it only says "No such file or directory".
    */
  def requireLoadable(library: Path): Unit = {
    val header = ByteBuffer.wrap(readStart(library, elfMachineOffset + 2))
    val isElf = header.remaining == elfMachineOffset + 2 && header.getInt(0) == 0x7f454c46
    if (!isElf) throw new NativeLibraryException(s"$library is not a shared library (it has no ELF header)")
    val isLittleEndian = header.get(5) == 1
    header.order(if (isLittleEndian) ByteOrder.LITTLE_ENDIAN else ByteOrder.BIG_ENDIAN)
    val machine = header.getShort(elfMachineOffset) & 0xffff
    val machineName = elfMachines.getOrElse(machine, s"ELF machine $machine")
    if (machineName != arch)
      throw new NativeLibraryException(
        s"$library is built for $machineName, but this JVM runs on $arch: use a libombus built on a machine like this one"
      )
  }

  private def readStart(file: Path, size: Int): Array[Byte] =
    try {
      val in = new DataInputStream(Files.newInputStream(file))
      try in.readNBytes(size)
      finally in.close()
    } catch {
      case e: IOException => throw new NativeLibraryException(s"cannot read the library $file: $e", e)
    }
}
