// netstack_peer TUN ADDRESS PORT: the same endpoint as lwip_peer.cc, which tells the protocol, with gVisor's TCP (netstack)
// as Debian packages it. The TUN device must exist and be up.
//
// Options are those that gVisor itself sets for a container (runsc): SACK on. All else is the stack's default.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	patience = 30 * time.Second // without a byte, then the receiver gives up
	mtu      = 1500
	nic      = tcpip.NICID(1)
)

type result struct {
	Seed    string  `json:"seed"`
	Bytes   int     `json:"bytes"`
	Seconds float64 `json:"seconds"`
	Connect float64 `json:"connect"`
	Gap     float64 `json:"gap"`
	OK      bool    `json:"ok"`
	End     string  `json:"end"`
	Error   string  `json:"error"`
}

var output sync.Mutex

func report(fields any) {
	output.Lock()
	defer output.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(fields); err != nil {
		log.Fatal(err)
	}
}

func stream(seed string, size int) []byte {
	out := make([]byte, 0, size+sha512.Size)
	for i := 0; len(out) < size; i++ {
		block := sha512.Sum512([]byte(fmt.Sprintf("%s %d", seed, i)))
		out = append(out, block[:]...)
	}
	return out[:size]
}

// isReset: the adapter wraps the stack's error as text.
func isReset(err error) bool {
	text := err.Error()
	return strings.Contains(text, (&tcpip.ErrConnectionReset{}).String()) || strings.Contains(text, (&tcpip.ErrAborted{}).String())
}

func open(device string, address tcpip.Address) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack); err != nil {
		return nil, errors.New(err.String())
	}
	fd, err := tun.Open(device)
	if err != nil {
		return nil, err
	}
	link, err := fdbased.New(&fdbased.Options{FDs: []int{fd}, MTU: mtu})
	if err != nil {
		return nil, err
	}
	if err := s.CreateNIC(nic, link); err != nil {
		return nil, errors.New(err.String())
	}
	own := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: address.WithPrefix()}
	if err := s.AddProtocolAddress(nic, own, stack.AddressProperties{}); err != nil {
		return nil, errors.New(err.String())
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return s, nil
}

func serve(connection net.Conn) {
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(2 * patience))
	question, err := bufio.NewReader(connection).ReadString('\n')
	words := strings.Fields(question)
	if err != nil || len(words) != 2 {
		return
	}
	size, _ := strconv.Atoi(words[1])
	if _, err = connection.Write(stream(words[0], size)); err == nil {
		_, err = connection.Read(make([]byte, 1))
	}
	if err != nil && isReset(err) {
		report(map[string]string{"serve": words[0], "end": "reset"})
	}
}

func receive(connection net.Conn, r *result, expected []byte) error {
	got := make([]byte, 0, len(expected))
	begin, last, part := time.Now(), time.Now(), make([]byte, 1<<18)
	if _, err := fmt.Fprintf(connection, "%s %d\n", r.Seed, len(expected)); err != nil {
		return err
	}
	var err error
	for len(got) < len(expected) && err == nil {
		var n int
		connection.SetReadDeadline(time.Now().Add(patience))
		n, err = connection.Read(part)
		now := time.Now()
		if gap := now.Sub(last).Seconds(); gap > r.Gap {
			r.Gap = gap
		}
		last, got = now, append(got, part[:n]...)
	}
	r.Seconds, r.Bytes, r.OK = last.Sub(begin).Seconds(), len(got), bytes.Equal(got, expected)
	if len(got) >= len(expected) {
		return nil
	}
	return err
}

func fetch(s *stack.Stack, to tcpip.FullAddress, seed string, size int) {
	r := result{Seed: seed, End: "complete"}
	expected := stream(seed, size)
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opened := time.Now()
	connection, err := gonet.DialContextTCP(limit, s, to, ipv4.ProtocolNumber)
	r.Connect = time.Since(opened).Seconds()
	if err == nil {
		err = receive(connection, &r, expected)
		connection.Close()
	}
	var timeout net.Error
	switch {
	case err == nil:
	case isReset(err):
		r.End = "reset"
	case errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded):
		r.End = "silent"
	default:
		r.End = "closed"
	}
	if err != nil {
		r.Error = err.Error()
	}
	report(r)
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: netstack_peer TUN ADDRESS PORT")
	}
	port, _ := strconv.Atoi(os.Args[3])
	s, err := open(os.Args[1], tcpip.Address(net.ParseIP(os.Args[2]).To4()))
	if err != nil {
		log.Fatal(err)
	}
	listener, err := gonet.ListenTCP(s, tcpip.FullAddress{NIC: nic, Port: uint16(port)}, ipv4.ProtocolNumber)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				log.Fatal(err)
			}
			go serve(connection)
		}
	}()
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var address, seed string
		var port, size int
		if _, err := fmt.Sscan(lines.Text(), &address, &port, &seed, &size); err != nil {
			continue
		}
		to := tcpip.FullAddress{NIC: nic, Addr: tcpip.Address(net.ParseIP(address).To4()), Port: uint16(port)}
		go fetch(s, to, seed, size)
	}
}
