#include "transports/tcp/sealed_records.hpp"

#include <sodium.h>

#include <array>
#include <cstring>

namespace tacc {
namespace {

using CipherNonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;
static_assert(RecordCipher::tagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES);
static_assert(sizeof(Key) == crypto_aead_chacha20poly1305_ietf_KEYBYTES);

CipherNonce nonceOf(std::uint64_t number) noexcept {
  CipherNonce nonce{};
  std::memcpy(nonce.data() + nonce.size() - sizeof number, &number, sizeof number);
  return nonce;
}

unsigned char* charsOf(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }

}  // namespace

RecordCipher::~RecordCipher() { ::sodium_memzero(key_.data(), key_.size()); }

void RecordCipher::seal(std::span<std::byte> record) noexcept {
  const auto bytes = static_cast<std::uint32_t>(record.size() - headBytes - tagBytes);
  std::memcpy(record.data(), &bytes, sizeof bytes);
  const CipherNonce nonce = nonceOf(number_++);
  unsigned char* const text = charsOf(record.data() + headBytes);
  ::crypto_aead_chacha20poly1305_ietf_encrypt_detached(text, text + bytes, nullptr, text, bytes, charsOf(record.data()),
                                                       headBytes, nullptr, nonce.data(), key_.data());
}

bool RecordCipher::open(std::span<std::byte> record) noexcept {
  const std::size_t bytes = record.size() - headBytes - tagBytes;
  const CipherNonce nonce = nonceOf(number_++);
  unsigned char* const text = charsOf(record.data() + headBytes);
  return ::crypto_aead_chacha20poly1305_ietf_decrypt_detached(text, nullptr, text, bytes, text + bytes,
                                                              charsOf(record.data()), headBytes, nonce.data(),
                                                              key_.data()) == 0;
}

std::optional<std::size_t> RecordCipher::lengthOf(std::span<const std::byte> begin) noexcept {
  std::uint32_t bytes;
  std::memcpy(&bytes, begin.data(), sizeof bytes);
  if (bytes == 0 || bytes > longestText) return std::nullopt;
  return headBytes + bytes + tagBytes;
}

std::span<std::byte> SealedOutput::compose(std::size_t bytes) {
  record_.resize(RecordCipher::headBytes + bytes + RecordCipher::tagBytes);
  sent_ = 0;
  return std::span(record_).subspan(RecordCipher::headBytes, bytes);
}

void SealedOutput::advance(std::size_t bytes) noexcept {
  sent_ += bytes;
  if (sent_ < record_.size()) return;
  record_.clear();
  sent_ = 0;
}

void SealedOutput::takeBack() noexcept {
  cipher_.takeBack();
  record_.clear();
}

std::span<std::byte> SealedInput::room(std::size_t bytes) {
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() < end_ + bytes) buffer_.resize(end_ + bytes);
  return std::span(buffer_).subspan(end_, bytes);
}

std::optional<std::span<const std::byte>> SealedInput::next() noexcept {
  const std::span<std::byte> waiting = std::span(buffer_).subspan(begin_, end_ - begin_);
  if (isForged_ || waiting.size() < RecordCipher::headBytes) return std::nullopt;
  const std::optional<std::size_t> length = RecordCipher::lengthOf(waiting);
  if (length && waiting.size() < *length) return std::nullopt;
  if (!length || !cipher_.open(waiting.first(*length))) {
    isForged_ = true;
    return std::nullopt;
  }
  begin_ += *length;
  return waiting.first(*length - RecordCipher::tagBytes).subspan(RecordCipher::headBytes);
}

}  // namespace tacc
