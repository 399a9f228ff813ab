#include "evaluation/ns3/dctcp.h"

#include <ns3/type-id.h>

namespace braid::crosscheck {

ns3::TypeId Dctcp::GetTypeId() {
  static const ns3::TypeId kId = ns3::TypeId("braid::crosscheck::Dctcp")
                                     .SetParent<ns3::TcpDctcp>()
                                     .SetGroupName("Internet")
                                     .AddConstructor<Dctcp>();
  return kId;
}

}  // namespace braid::crosscheck
