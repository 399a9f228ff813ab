#pragma once

// Readers of values that have a form of their own, and stand for one key of the table of settings
// (settings.cc). They report mistakes as the readers of config_reader.h do.

#include "gateway/config/config_reader.h"

namespace braid {

std::optional<std::string> readPeersFolder(const ConfigValue& value, ConfigDiagnostics& out);
std::optional<std::string> readStatePath(const ConfigValue& value, ConfigDiagnostics& out);
std::optional<std::string> readSocketPath(const ConfigValue& value, ConfigDiagnostics& out);
/// An empty text is a valid value.
std::optional<std::string> readTracePath(const ConfigValue& value, ConfigDiagnostics& out);
inline constexpr const char* kIdentityRemedy =
    "name the file; 'braidctl keygen NAME' makes key and certificate";
/// A file of the identity; a relative path stays one.
std::optional<std::string> readFileName(const ConfigValue& value, ConfigDiagnostics& out);

/// The file of a pre-shared key; a relative path stays one.
std::optional<std::string> readPskName(const ConfigValue& value, ConfigDiagnostics& out);

/// One address, or one of each family.
std::optional<std::vector<Address>> readAddressPair(const ConfigValue& value,
                                                    ConfigDiagnostics& out);
void readUplinkGateway(const ConfigValue& value, UplinkConfig& uplink, ConfigDiagnostics& out);
/// Bounds of `metered.cap`, in bytes. A smaller cap would be little more than the reserve that is
/// kept free (UplinkMeter::reserve()).
inline constexpr uint64_t kSmallestCap = 10'000'000;
inline constexpr uint64_t kLargestCap = 1'000'000'000'000'000;
/// Bytes that a metered uplink may carry in a period.
std::optional<uint64_t> readCap(const ConfigValue& value, ConfigDiagnostics& out);
std::optional<Pin> readPeerPin(const ConfigValue& value, ConfigDiagnostics& out);
void readPeerEndpoints(const ConfigValue& value, PeerConfig& peer, ConfigDiagnostics& out);
std::optional<Duration> readKeepalive(const ConfigValue& value, ConfigDiagnostics& out);
void readEtherTypes(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// Eight adjacent bits.
std::optional<uint32_t> readMarkMask(const ConfigValue& value, ConfigDiagnostics& out);
/// MARK or MARK/MASK, as `ip rule` writes them; no mark of 0.
std::optional<MarkMatch> readMark(const ConfigValue& value, ConfigDiagnostics& out);
void readNat(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// `portal-check`.
void readPortalCheck(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// An address, optionally with a port.
void readForwardTarget(const ConfigValue& value, PortForward& forward, ConfigDiagnostics& out);
/// `bdp` and `mark-threshold`: only reports mistakes. checkTunnel() takes beta from the two.
void readAmpPackets(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
std::optional<std::string> readPolicy(const ConfigValue& value, ConfigDiagnostics& out);
/// An IP protocol number, or its name.
std::optional<uint64_t> readProtocol(const ConfigValue& value, ConfigDiagnostics& out);
/// A code point, or its name.
std::optional<uint64_t> readDscp(const ConfigValue& value, ConfigDiagnostics& out);

/// The most packets of `bdp` and `mark-threshold`.
inline constexpr uint64_t kMostAmpPackets = 1 << 20;

}  // namespace braid
