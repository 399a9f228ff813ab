#include "simnet/tcp/tcp_flow.h"

#include <sstream>

namespace braid::sim {

tcp::Options tcp::plainOptions() {
  Options o;
  o.sack = o.timestamps = o.limitedTransmit = o.delayedAcks = false;
  o.minRtoAboveSrtt = true;
  o.maxRto = 4s;
  return o;
}

namespace {
tcp::Options optionsOf(const TcpOptions& options) {
  tcp::Options o = tcp::plainOptions();
  o.window = options.window;
  o.mss = options.mss;
  o.v6 = options.v6;
  o.ecn = options.ecn;
  o.content = options.content;
  return o;
}
}  // namespace

TcpFlow::TcpFlow(Timeline& world, Station& from, Station& to, uint16_t port,
                 const TcpOptions& options)
    : TcpFlow(world, from, to, port, options.bytes, optionsOf(options)) {}

TcpFlow::TcpFlow(Timeline& world, Station& from, Station& to, uint16_t port, uint64_t bytes,
                 const tcp::Options& options)
    : name_("tcp " + std::to_string(port) + " " + from.name() + " > " + to.name()),
      connection_(world, from, to, {port, port}, options) {
  if (bytes > 0) write(bytes);
}

std::string TcpFlow::describe() const {
  const tcp::Sender& s = sender().sender();
  std::ostringstream out;
  out << name_ << ": " << received() << "/" << s.written() << " acked " << s.acked() << " sent "
      << s.sentUpTo() << " cwnd " << s.cwnd() << " mss " << mss() << " rto "
      << toMilliseconds(s.rto().value()) << " retransmits " << retransmits() << " timeouts "
      << timeouts() << " wrong " << wrongBytes() << " gaps " << gaps() << " repeats " << repeats()
      << " stall " << toMilliseconds(longestStall());
  return out.str();
}

}  // namespace braid::sim
