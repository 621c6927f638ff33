#include "core/sha256.h"

#include "check.h"

static const char *hex(const uint8_t digest[32]) {
    static char text[65];
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

static const char *sha256(const void *data, size_t size) {
    OmiSha256 sha;
    uint8_t digest[32];
    omi_sha256_init(&sha);
    omi_sha256_update(&sha, data, size);
    omi_sha256_final(&sha, digest);
    return hex(digest);
}

static const char *hmac(const void *key, size_t key_size, const void *data, size_t size) {
    OmiHmac state;
    uint8_t digest[32];
    omi_hmac_init(&state, key, key_size);
    omi_hmac_update(&state, data, size);
    omi_hmac_final(&state, digest);
    return hex(digest);
}

#define CHECK_TEXT(actual, expected) CHECK(strcmp((actual), (expected)) == 0)

/* Examples of FIPS 180-4 and its appendices. */
TEST(sha256_gives_the_fips_180_digests) {
    CHECK_TEXT(sha256("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_TEXT(sha256("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_TEXT(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK_TEXT(
        sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmno"
               "pqrstnopqrstu",
               112),
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    static char million[1000000];
    memset(million, 'a', sizeof million);
    CHECK_TEXT(sha256(million, sizeof million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(a_digest_does_not_depend_on_how_the_data_is_cut) {
    uint8_t data[200], whole[32], pieces[32];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)test_random();
    OmiSha256 sha;
    omi_sha256_init(&sha);
    omi_sha256_update(&sha, data, sizeof data);
    omi_sha256_final(&sha, whole);
    for (size_t cut = 0; cut <= sizeof data; cut++) {
        omi_sha256_init(&sha);
        omi_sha256_update(&sha, data, cut);
        omi_sha256_update(&sha, data + cut, sizeof data - cut);
        omi_sha256_final(&sha, pieces);
        CHECK(omi_secret_equal(whole, pieces, 32));
    }
}

/* RFC 4231, test cases 1 to 4, 6 and 7 (5 truncates, which we never do). */
TEST(hmac_gives_the_rfc_4231_digests) {
    uint8_t key[131], data[50];
    memset(key, 0x0b, 20);
    CHECK_TEXT(hmac(key, 20, "Hi There", 8), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    CHECK_TEXT(hmac("Jefe", 4, "what do ya want for nothing?", 28),
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, 20);
    memset(data, 0xdd, 50);
    CHECK_TEXT(hmac(key, 20, data, 50), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    for (int i = 0; i < 25; i++)
        key[i] = (uint8_t)(i + 1);
    memset(data, 0xcd, 50);
    CHECK_TEXT(hmac(key, 25, data, 50), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    memset(key, 0xaa, 131);
    CHECK_TEXT(hmac(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 54),
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    static const char text[] =
        "This is a test using a larger than block-size key and a larger than block-size data. The key "
        "needs to be hashed before being used by the HMAC algorithm.";
    CHECK_TEXT(hmac(key, 131, text, sizeof text - 1),
               "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(secrets_compare_and_random_bytes_differ) {
    uint8_t a[32], b[32];
    CHECK(omi_random_bytes(a, sizeof a) && omi_random_bytes(b, sizeof b));
    CHECK(!omi_secret_equal(a, b, sizeof a));
    memcpy(b, a, sizeof a);
    CHECK(omi_secret_equal(a, b, sizeof a));
    b[31] ^= 1;
    CHECK(!omi_secret_equal(a, b, sizeof a));
    omi_secret_wipe(a, sizeof a);
    for (size_t i = 0; i < sizeof a; i++)
        CHECK_EQ(a[i], 0);
}
