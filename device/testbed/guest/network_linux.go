package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// address is the guest's address in QEMU's own network. Forwarded connections come from
// that network too, so that no route is needed.
const address = "10.0.2.15"

// network brings up loopback and the first network card, for which it waits up to 60 s: a
// card on USB appears late.
func network() error {
	if err := up("lo", "127.0.0.1", "255.0.0.0"); err != nil {
		return err
	}
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		all, err := net.Interfaces()
		if err != nil {
			return err
		}
		for _, i := range all {
			if i.Flags&net.FlagBroadcast != 0 {
				return up(i.Name, address, "255.255.255.0")
			}
		}
	}
	return errors.New("no network card appeared")
}

func up(name, ip, mask string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	set := func(request uint, fill func(*unix.Ifreq) error) error {
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = fill(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, request, r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	inet := func(ip string) func(*unix.Ifreq) error {
		return func(r *unix.Ifreq) error { return r.SetInet4Addr(net.ParseIP(ip).To4()) }
	}
	if err := set(unix.SIOCSIFADDR, inet(ip)); err != nil {
		return err
	}
	if err := set(unix.SIOCSIFNETMASK, inet(mask)); err != nil {
		return err
	}
	return set(unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil })
}

// forward forwards connections to loopback, the only address on which the site listens. The
// port is the same everywhere, so that the Host header is right.
func forward(port string) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
	for err == nil {
		var outer net.Conn
		if outer, err = listener.Accept(); err != nil {
			break
		}
		go func() {
			defer outer.Close()
			inner, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
			if err != nil {
				return
			}
			defer inner.Close()
			go func() {
				io.Copy(inner, outer)
				inner.(*net.TCPConn).CloseWrite()
			}()
			io.Copy(outer, inner)
		}()
	}
	fmt.Println("guest:", err)
	os.Exit(1)
}
