package io.ombus.spark.streams

import java.nio.file.{Files, Path}

import munit.FunSuite

import io.ombus.spark.OmbusOptionException
import io.ombus.spark.streams.StreamUri._

class StreamUriSuite extends FunSuite {

  test("addresses") {
    assertEquals(StreamUri.parse("log:///var/engine-0/"), Log("log:///var/engine-0/", "/var/engine-0", None))
    assertEquals(StreamUri.parse("log:///a%20b?name=x"), Log("log:///a%20b?name=x", "/a b", Some("x")))
    assertEquals(StreamUri.parse("shm://engine-0"), Ring("shm://engine-0", "/om-bus-engine-0", "engine-0", None))
    assertEquals(StreamUri.parse("shm:///om-bus-e"), Ring("shm:///om-bus-e", "/om-bus-e", "e", None))
    assertEquals(
      StreamUri.parse("shm://e?log=/var/e&name=f"),
      Ring("shm://e?log=/var/e&name=f", "/om-bus-e", "f", Some("/var/e"))
    )
    assertEquals(StreamUri.parse("tcp://h:1/s"), Tcp("tcp://h:1/s"))
  }

  test("lists, and patterns that hold commas and question marks") {
    assertEquals(StreamUri.parseList("log:///a, log:///b").map(_.text), Seq("log:///a", "log:///b"))
    val patterns = StreamUri.parseList("log:///var/{a,b}-?,shm://x")
    assertEquals(patterns.map(_.text), Seq("log:///var/{a,b}-?", "shm://x"))
    assert(patterns.head.asInstanceOf[Log].isPattern)
  }

  test("bad addresses are refused with what to do") {
    Seq(
      "" -> "OMBUS_NO_URI",
      "/var/engine-0" -> "log:///var/engine-0",
      "engine-0" -> "has a scheme",
      "kafka://x" -> "no scheme kafka://",
      "log://var/x" -> "three slashes",
      "log:///" -> "no directory",
      "log:///a?nam=x" -> "known: name",
      "log:///a?name=" -> "needs a value",
      "log:///a?name=__ids" -> "?name=NAME",
      "log:///a/*?name=x" -> "a pattern of logs",
      "log:///a%2" -> "two hex digits",
      "shm://" -> "one name",
      "shm://a/b" -> "one name",
      "shm://a?log=x" -> "absolute path",
      "log:///a,,log:///b" -> "empty address"
    ).foreach { case (text, word) =>
      val message = intercept[OmbusOptionException](StreamUri.parseList(text)).getMessage
      assert(message.contains(word), s"$text: $message")
    }
  }

  private def resolver(uris: String) =
    new StreamResolver(StreamUri.parseList(uris), durableOnly = false, _ => throw new IllegalStateException)

  test("tcp:// says which release has it") {
    val message = intercept[OmbusOptionException](resolver("tcp://h:1/s")).getMessage
    assert(message.contains("release"), message)
  }

  test("two logs of one name are refused, and a pattern that matches nothing is no error") {
    val root = Files.createTempDirectory("ombus-resolver-")
    assertEquals(resolver(s"log://$root/*").streams().size, 0)
    assertEquals(resolver("log:///no/such/place/*").streams().size, 0)
    Seq("a/x", "b/x").foreach(name => Files.createDirectories(Path.of(root.toString, name)))
    val message = intercept[OmbusOptionException](resolver(s"log://$root/*/x").streams()).getMessage
    assert(message.contains("OMBUS_DUPLICATE_STREAM") && message.contains("?name=NAME"), message)
  }
}
