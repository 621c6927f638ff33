package io.ombus.spark.nativebridge

import java.io.IOException

/** A function of libombus failed.
  * @param code
  *   the negative result, one of [[NativeCode]] or another of om_bus_error.h
  * @param detail
  *   what libombus says of file, offset or sequence; may be empty
  */
final class OmbusNativeException(val code: Int, val codeName: String, val meaning: String, val detail: String)
    extends IOException(
      s"$codeName: ${if (detail.isEmpty) meaning else s"$detail ($meaning)"}"
    )

/** The result codes that the connector treats in a way of their own. */
object NativeCode {
  val ShmOpen: Int = -803
  val LogCorrupt: Int = -847
  val LogPruned: Int = -849
  val LogForeign: Int = -850
  val LogNotFound: Int = -855
  val ColIncomplete: Int = -890
  val SpoolReset: Int = -892
}
