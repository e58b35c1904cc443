// How a machine writes values: the spellings of a program's surface, made ready for reading.
//
// Bare members (of the root, or of all objects and arrays) are written head, key, between, value,
// tail, with a separator between two of them; everything else has brackets as in JSON.  All fixed
// texts are scripts: what is read in one mode (kScript), piece by piece, with a continuation of its
// own.  A text may have several readings as long as it lasts (a string or a number): the config then
// is the union of those that are still possible.
#pragma once

#include <string>
#include <vector>

#include "constrain/lexical_pool.hpp"
#include "constrain/program.hpp"

namespace constrain {

// null, true, false in JSON and in Python; index % 3 is the type.
inline constexpr const char* kLiterals[6] = {"null", "true", "false", "None", "True", "False"};

struct Writing {
  using Piece = Surface::Piece;
  using Strings = Surface::Strings;
  enum Script : uint8_t {
    kHead, kBetween, kAfterString, kAfterCdata, kWholeTail, kSeparator, kItem, kQuote, kAfterQuote,
    kCdata, kScripts,
  };

  Writing(const Surface& surface, Whitespace whitespace, LexicalPool& pool);

  bool bare = false, nested = false;
  bool key_again = false;      // the tail writes the key again
  Strings outer, inner;        // strings that are values of bare members, and all others
  bool python_words, cdata;
  bool bare_keys = false;      // keys of objects in brackets have no quotes
  TextId item = 0;             // the key of items, where it is written
  std::vector<Piece> scripts[kScripts];
  std::string lead;            // whitespace that the tail begins with
  std::string quote;
  uint32_t key_unit = 0;       // decoders: a bare key, a string up to the tail, one in CDATA,
  uint32_t tail_unit = 0;      // one up to the next quote, unescaped ones of Python
  uint32_t cdata_unit = 0, quote_unit = 0, single_unit = 0, double_unit = 0;
  LexId raw_texts = LexicalPool::kAnything;   // what is read of texts that need no CDATA

  // The first byte of a script, which begins with text; none if it is empty.
  std::string_view first(Script script) const {
    const auto& pieces = scripts[script];
    return pieces.empty() ? std::string_view() : std::string_view(pieces[0].text).substr(0, 1);
  }
  // The text that it begins with.
  std::string_view opening(Script script) const {
    const auto& pieces = scripts[script];
    return pieces.empty() ? std::string_view() : std::string_view(pieces[0].text);
  }
  bool begins(Script script, uint8_t byte) const {
    const std::string_view text = first(script);
    return !text.empty() && uint8_t(text[0]) == byte;
  }
};

}  // namespace constrain
