#include "evaluation/ns3/network.h"

#include <ns3/boolean.h>
#include <ns3/config.h>
#include <ns3/data-rate.h>
#include <ns3/double.h>
#include <ns3/drop-tail-queue.h>
#include <ns3/global-value.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/ipv4-static-routing-helper.h>
#include <ns3/ipv4.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/queue-size.h>
#include <ns3/red-queue-disc.h>
#include <ns3/string.h>
#include <ns3/traffic-control-helper.h>

namespace braid::crosscheck {

namespace {

// packets of the device's queue, which lies below the queue with a discipline
constexpr uint32_t kBelow = 1;
constexpr uint32_t kHostQueue = 1 << 20;  // packets: more than all windows together

ns3::TrafficControlHelper disciplineOf(const std::optional<PortSettings>& port) {
  using namespace ns3;
  // Packets in the device's queue also count as waiting.
  QueueSize limit(QueueSizeUnit::PACKETS, port ? port->packets - kBelow : kHostQueue);
  TrafficControlHelper helper;
  if (!port || !port->threshold) {
    helper.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", QueueSizeValue(limit));
    return helper;
  }
  // DCTCP's marking (SIGCOMM 2010, section 3.1: "greater than K upon its arrival"): RED on the
  // current queue length with one threshold. RED checks its own queue for "K or more" packets, and
  // one more packet is in the device's queue.
  double threshold = *port->threshold;
  helper.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", QueueSizeValue(limit), "MinTh",
                          DoubleValue(threshold), "MaxTh", DoubleValue(threshold), "QW",
                          DoubleValue(1), "Gentle", BooleanValue(false), "UseEcn",
                          BooleanValue(true), "UseHardDrop", BooleanValue(false));
  return helper;
}

}  // namespace

uint32_t Port::waiting() const {
  return queue_->GetNPackets() + device_->GetQueue()->GetNPackets();
}
uint32_t Port::dropped() const {
  return queue_->GetStats().nTotalDroppedPackets;
}
uint32_t Port::marked() const {
  return queue_->GetStats().nTotalMarkedPackets;
}

Network::Network() {
  ns3::GlobalValue::Bind("ChecksumEnabled", ns3::BooleanValue(false));
}

ns3::Ptr<ns3::Node> Network::addNode() const {
  auto node = ns3::CreateObject<ns3::Node>();
  ns3::InternetStackHelper stack;
  stack.SetIpv6StackInstall(false);
  stack.Install(node);
  return node;
}

void Network::join(const ns3::Ptr<ns3::Node>& a, const ns3::Ptr<ns3::Node>& b,
                   const LinkSettings& link, const std::optional<PortSettings>& portOfA,
                   const std::optional<PortSettings>& portOfB) {
  using namespace ns3;
  PointToPointHelper helper;
  helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(link.rate))));
  helper.SetChannelAttribute("Delay", TimeValue(link.delay));
  helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, kBelow)));
  NetDeviceContainer devices = helper.Install(a, b);
  QueueDiscContainer queues = disciplineOf(portOfA).Install(devices.Get(0));
  queues.Add(disciplineOf(portOfB).Install(devices.Get(1)));
  // Each link has its own subnet: 10.0.0.0/30, 10.0.0.4/30 and so on.
  auto number = static_cast<uint32_t>(ports_.size() / 2);
  Ipv4AddressHelper addresses(Ipv4Address(0x0a000000 + number * 4), Ipv4Mask("/30"));
  Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
  for (uint32_t end = 0; end < 2; ++end) {
    const Ptr<Node>& from = end == 0 ? a : b;
    const Ptr<Node>& to = end == 0 ? b : a;
    ports_.insert({{from->GetId(), to->GetId()},
                   Port(DynamicCast<PointToPointNetDevice>(devices.Get(end)), queues.Get(end),
                        interfaces.GetAddress(end))});
  }
}

void Network::addRoute(const ns3::Ptr<ns3::Node>& node, ns3::Ipv4Address address,
                       const ns3::Ptr<ns3::Node>& neighbour) const {
  auto ipv4 = node->GetObject<ns3::Ipv4>();
  auto interface =
      static_cast<uint32_t>(ipv4->GetInterfaceForDevice(port(node, neighbour).device()));
  ns3::Ipv4StaticRoutingHelper().GetStaticRouting(ipv4)->AddHostRouteTo(address, interface);
}

void Network::addDefaultRoute(const ns3::Ptr<ns3::Node>& node,
                              const ns3::Ptr<ns3::Node>& neighbour) const {
  auto ipv4 = node->GetObject<ns3::Ipv4>();
  auto interface =
      static_cast<uint32_t>(ipv4->GetInterfaceForDevice(port(node, neighbour).device()));
  ns3::Ipv4StaticRoutingHelper().GetStaticRouting(ipv4)->SetDefaultRoute(
      port(neighbour, node).address(), interface);
}

}  // namespace braid::crosscheck
