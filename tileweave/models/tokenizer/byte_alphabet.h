// The alphabet of byte-level vocabularies: each of the 256 bytes is written as one printable
// character, printable Latin-1 as itself, the other 68 as U+0100 and up. Internal to the tokenizer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tileweave {

class ByteAlphabet {
 public:
  constexpr ByteAlphabet() {
    char32_t spare = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool is_printable =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const char32_t letter = is_printable ? byte : spare++;
      letters_[byte] = static_cast<std::uint16_t>(letter);
      bytes_[letter] = static_cast<std::int16_t>(byte);
    }
  }

  constexpr char32_t letter(unsigned char byte) const { return letters_[byte]; }
  constexpr std::optional<unsigned char> byte(char32_t letter) const {
    if (letter >= bytes_.size() || bytes_[letter] < 0) return std::nullopt;
    return static_cast<unsigned char>(bytes_[letter]);
  }

 private:
  static constexpr std::size_t kLetters = 0x100 + 68;
  static constexpr std::array<std::int16_t, kLetters> no_bytes() {
    std::array<std::int16_t, kLetters> bytes{};
    bytes.fill(-1);
    return bytes;
  }

  std::array<std::uint16_t, 256> letters_{};
  std::array<std::int16_t, kLetters> bytes_ = no_bytes();
};

inline constexpr ByteAlphabet kByteAlphabet{};

}  // namespace tileweave
