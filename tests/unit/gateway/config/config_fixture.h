#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gateway/config/config.h"

namespace braid {

inline constexpr char kPinA[] = "sha256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
inline constexpr char kPinB[] = "sha256:AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
inline constexpr char kPinC[] = "sha256:AgECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A complete edge; tests replace or append parts.
inline std::string edgeText() {
  return std::string(
             "identity: {key: edge.key, certificate: edge.crt}\n"
             "device:\n"
             "  addresses: [10.99.0.1/30, 'fd99::1/64']\n"
             "  routes: [10.1.0.0/16]\n"
             "uplinks:\n"
             "  - {name: wifi, interface: wlan0}\n"
             "peers:\n"
             "  - name: hub\n"
             "    pin: ") +
         kPinA +
         "\n"
         "    endpoints: [192.0.2.1:4433]\n"
         "    prefixes: [10.1.0.0/16, 10.99.0.0/30]\n";
}

/// `text` with its only `from` replaced.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << from << " is there twice";
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

inline ConfigResult parse(const std::string& text) {
  LoadOptions options;
  options.checkIdentity = false;
  return parseConfig(text, "e.yaml", options);
}

/// The errors of a file as text.
inline std::vector<std::string> errorsOf(const ConfigResult& result) {
  std::vector<std::string> lines;
  if (const auto* errors = std::get_if<ConfigErrors>(&result)) {
    for (const ConfigError& error : *errors) lines.push_back(error.toString());
  }
  return lines;
}
inline std::vector<std::string> errorsOf(const std::string& text) {
  return errorsOf(parse(text));
}

/// The configuration of a file that must be right.
inline Config configOf(const std::string& text) {
  ConfigResult result = parse(text);
  EXPECT_THAT(errorsOf(result), testing::IsEmpty());
  return std::holds_alternative<Config>(result) ? std::get<Config>(result) : Config{};
}

}  // namespace braid
