package io.ombus.spark

import java.util.Locale

/** Finds what a misspelt word was probably meant to be. */
private[spark] object Spelling {

  /** The word nearest to `text`, if one is near enough to be meant. */
  def nearest(text: String, words: Seq[String]): Option[String] = {
    val lower = text.toLowerCase(Locale.ROOT)
    val ranked = words.map(word => (distance(lower, word.toLowerCase(Locale.ROOT)), word)).sortBy(_._1)
    ranked.headOption.collect { case (edits, word) if edits <= math.max(2, text.length / 3) => word }
  }

  /** Edits (insert, delete, replace) that make one word the other. */
  private[spark] def distance(a: String, b: String): Int = {
    var previous = (0 to b.length).toArray
    for (i <- 1 to a.length) {
      val current = new Array[Int](b.length + 1)
      current(0) = i
      for (j <- 1 to b.length) {
        val replaced = previous(j - 1) + (if (a(i - 1) == b(j - 1)) 0 else 1)
        current(j) = math.min(replaced, math.min(previous(j), current(j - 1)) + 1)
      }
      previous = current
    }
    previous(b.length)
  }
}
