package io.ombus.spark.nativebridge

/** The functions of libombus that the connector calls, under their C names: jnr-ffi implements this trait. The
  * declarations are in `native/include/ombus`. Handles and addresses are Long; a text goes in as bytes that end in 0.
  *
  * A function with more than four parameters must take one of them as an array: for numbers alone jnr-ffi makes machine code
  * of its own, which on x86-64 damages the stack when parameters do not fit the registers (seen with jnr-ffi 2.2.19).
  */
private[nativebridge] trait LibOmbus {
  def om_bus_version(): String
  def om_bus_error_string(rc: Int): String
  def om_bus_error_name(rc: Int): String
  def om_bus_last_error(): String

  // om_log.h
  def om_log_open_reader(out: Long, dir: Array[Byte], options: Long): Int
  def om_log_reader_close(reader: Long): Unit
  def om_log_first_seq(reader: Long): Long
  def om_log_last_seq(reader: Long): Long
  def om_log_id(reader: Long, id: Long): Unit
  def om_log_epoch(reader: Long): Long
  def om_log_seek(reader: Long, seq: Long): Int
  def om_log_seek_time(reader: Long, timeNs: Long): Int
  def om_log_position(reader: Long): Long
  def om_log_next(reader: Long, record: Long): Int
  def om_log_plan(reader: Long, from: Long, to: Long, n: Int, out: Array[Long]): Int
  def om_log_range_stats(reader: Long, from: Long, to: Long, out: Array[Long]): Int
  def om_log_limit(reader: Long, from: Long, to: Long, maxRecords: Long, maxBytes: Long, end: Array[Long]): Int
  def om_log_consumer_save(dir: Array[Byte], name: Array[Byte], seq: Long): Int
  def om_log_consumer_remove(dir: Array[Byte], name: Array[Byte]): Int

  // om_col.h
  def om_col_open(out: Long, dir: Array[Byte], options: Long): Int
  def om_col_next(reader: Long, rows: Long, stats: Long): Int
  def om_col_close(reader: Long): Unit

  // om_spool.h
  def om_spool_start(out: Long, ring: Array[Byte], dir: Array[Byte], options: Long): Int
  def om_spool_status(spool: Long, out: Long): Int
  def om_spool_stop(spool: Long): Int
}
