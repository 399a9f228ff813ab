// A QUIC server that sends, and a client that counts: quic server ADDRESS | quic client ADDRESS SECONDS.
//
// The server opens one stream on each connection and writes until the client closes it. The client prints one JSON
// object: bytes and seconds from the call of Dial to the end of its time.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
)

const protocol = "bulk"

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "server":
		err = serve(os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == "client":
		err = fetch(os.Args[2], os.Args[3])
	default:
		err = errors.New("usage: quic server ADDRESS | quic client ADDRESS SECONDS")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	body, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{body}, PrivateKey: key}, err
}

func serve(address string) error {
	own, err := certificate()
	if err != nil {
		return err
	}
	settings := &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{protocol}}
	listener, err := quic.ListenAddr(address, settings, nil)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go func() {
			stream, err := connection.OpenUniStream()
			block := make([]byte, 1<<16)
			for err == nil { // until the client closes
				_, err = stream.Write(block)
			}
		}()
	}
}

func fetch(address, length string) error {
	seconds, err := strconv.ParseFloat(length, 64)
	if err != nil {
		return err
	}
	began := time.Now()
	end := began.Add(time.Duration(seconds * float64(time.Second)))
	own := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	// Windows as large as a browser's, so that they are not what is measured.
	windows := &quic.Config{MaxStreamReceiveWindow: 15 << 20, MaxConnectionReceiveWindow: 25 << 20}
	limit, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	connection, err := quic.DialAddr(limit, address, own, windows)
	if err != nil {
		return err
	}
	stream, err := connection.AcceptUniStream(limit)
	if err != nil {
		return err
	}
	if err = stream.SetReadDeadline(end); err != nil {
		return err
	}
	var size int64
	block := make([]byte, 1<<18)
	for err == nil {
		var part int
		part, err = stream.Read(block)
		size += int64(part)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	took := time.Since(began).Seconds()
	if err = connection.CloseWithError(0, "enough"); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"bytes": size, "seconds": took})
}
