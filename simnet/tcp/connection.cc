#include "simnet/tcp/connection.h"

#include "inet/ip.h"

namespace braid::sim::tcp {

Connection::Connection(Timeline& timeline, Station& client, Station& server, Ports ports,
                       const Options& ofClient, const Options& ofServer)
    : client_({timeline,
               client,
               {client.host(ofClient.v6), server.host(ofClient.v6), ip::kTcp},
               ports.client,
               ports.server,
               timeline.random().next(),
               0},
              ofClient),
      server_({timeline,
               server,
               {server.host(ofClient.v6), client.host(ofClient.v6), ip::kTcp},
               ports.server,
               ports.client,
               timeline.random().next(),
               0},
              ofServer) {
  client_.peer_ = &server_;
  server_.peer_ = &client_;
  client_.place_.peerSeed = server_.place_.seed;
  server_.place_.peerSeed = client_.place_.seed;
  client_.connect();
}

void Connection::abort() {
  client_.stop();
  server_.stop();
}

}  // namespace braid::sim::tcp
