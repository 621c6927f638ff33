package io.ombus.spark.nativebridge

/** The functions of libombus that the connector calls, under their C names: jnr-ffi implements this trait. The
  * declarations are in `native/include/ombus`.
  */
private[nativebridge] trait LibOmbus {
  def om_bus_version(): String
  def om_bus_error_string(rc: Int): String
}
