package io.ombus.spark.nativebridge

/** How a spool does.
  * @param failure
  *   why it has stopped
  * @param lossWhy
  *   0 = nothing was missed, else see `om_spool.h`
  */
final case class SpoolStatus(
    records: Long,
    bytes: Long,
    lastSeq: Long,
    losses: Long,
    failure: Option[OmbusNativeException]
)

/** A thread of libombus that drains a ring into a log. */
final class NativeSpool private (library: NativeLibrary, handle: Long) extends AutoCloseable {
  private var open = true

  def status: SpoolStatus = synchronized {
    if (!open) throw new IllegalStateException("the spool is closed")
    NativeMemory.using(NativeSpool.StatusBytes) { memory =>
      val rc = library.functions.om_spool_status(handle, memory.address)
      SpoolStatus(
        memory.long(0),
        memory.long(8),
        memory.long(16),
        memory.long(24),
        if (rc < 0) Some(library.failure(rc)) else None
      )
    }
  }

  override def close(): Unit = synchronized {
    if (open) {
      open = false
      library.check(library.functions.om_spool_stop(handle))
    }
  }
}

object NativeSpool {
  private val StatusBytes = 64L

  def start(ring: String, directory: String): NativeSpool = {
    val library = NativeLibrary.instance
    val handle = NativeMemory.using(8) { memory =>
      library.check(
        library.functions.om_spool_start(memory.address, NativeMemory.text(ring), NativeMemory.text(directory), 0L)
      )
      memory.long(0)
    }
    new NativeSpool(library, handle)
  }
}
