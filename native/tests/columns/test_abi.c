/** The layouts that the connector's Scala code relies on (NativeColumns.scala, NativeLog.scala, NativeSpool.scala). */

#include "check.h"
#include "ombus/om_col.h"
#include "ombus/om_spool.h"

#define AT(type, field, offset) CHECK_EQ(offsetof(type, field), offset)

TEST(column_options) {
    CHECK_EQ(sizeof(OmColOptions), 112);
    AT(OmColOptions, from_seq, 0);
    AT(OmColOptions, to_seq, 8);
    AT(OmColOptions, flags, 16);
    AT(OmColOptions, rows_max, 20);
    AT(OmColOptions, log_id, 32);
    AT(OmColOptions, filter, 48);
    AT(OmColFilter, from_time_ns, 0);
    AT(OmColFilter, to_time_ns, 8);
    AT(OmColFilter, types, 16);
    AT(OmColFilter, payload_min, 48);
    AT(OmColFilter, flags, 56);
}

TEST(column_stats) {
    CHECK_EQ(sizeof(OmColStats), 14 * 8);
    AT(OmColStats, records, 0);
    AT(OmColStats, bytes, 1 * 8);
    AT(OmColStats, gaps, 3 * 8);
    AT(OmColStats, short_payloads, 5 * 8);
    AT(OmColStats, short_seq, 6 * 8);
    AT(OmColStats, short_len, 7 * 8);
    AT(OmColStats, damages, 8 * 8);
    AT(OmColStats, pruned_ranges, 9 * 8);
    AT(OmColStats, lost_first_seq, 10 * 8);
    AT(OmColStats, lost_last_seq, 11 * 8);
    AT(OmColStats, next_seq, 12 * 8);
    AT(OmColStats, done, 13 * 8);
}

TEST(log_structs) {
    CHECK_EQ(sizeof(OmLogRange), 32);
    AT(OmLogRange, from_seq, 0);
    AT(OmLogRange, to_seq, 8);
    AT(OmLogRange, bytes, 16);
    AT(OmLogRange, records, 24);
    CHECK_EQ(sizeof(OmLogRecord), 32);
    AT(OmLogRecord, wal_seq, 0);
    AT(OmLogRecord, timestamp_ns, 8);
    AT(OmLogReaderOptions, flags, 0);
    CHECK_EQ(sizeof(OmLogReaderOptions), 8);
    CHECK_EQ(OM_LOG_DURABLE_ONLY, 4);
    CHECK_EQ(OM_LOG_ID_SIZE, 16);
}

TEST(spool_status) {
    CHECK_EQ(sizeof(OmSpoolStatus), 64);
    AT(OmSpoolStatus, records, 0);
    AT(OmSpoolStatus, bytes, 8);
    AT(OmSpoolStatus, last_seq, 16);
    AT(OmSpoolStatus, losses, 24);
}

TEST(codes_that_scala_names) {
    CHECK_EQ(OM_ERR_BUS_SHM_OPEN, -803);
    CHECK_EQ(OM_ERR_LOG_CORRUPT, -847);
    CHECK_EQ(OM_ERR_LOG_PRUNED, -849);
    CHECK_EQ(OM_ERR_LOG_FOREIGN, -850);
    CHECK_EQ(OM_ERR_LOG_NOT_FOUND, -855);
    CHECK_EQ(OM_ERR_COL_INCOMPLETE, -890);
    CHECK_EQ(OM_ERR_SPOOL_RESET, -892);
}
