package mdns

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// networkEvents returns a channel that receives after the interfaces or their addresses may
// have changed. It is closed when ctx ends or the events fail.
func networkEvents(ctx context.Context) (<-chan struct{}, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	const groups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	events, socket := make(chan struct{}, 1), os.NewFile(uintptr(fd), "rtnetlink")
	context.AfterFunc(ctx, func() { socket.Close() })
	go func() {
		defer close(events)
		b := make([]byte, 1<<16)
		for {
			if _, err := socket.Read(b); err != nil && !errors.Is(err, unix.ENOBUFS) { // events were lost: something has changed
				return
			}
			select {
			case events <- struct{}{}:
			default:
			}
		}
	}()
	return events, nil
}

// addressState returns the state of IPv6 duplicate address detection, before whose end an
// address cannot be used.
func addressState() string {
	b, _ := os.ReadFile("/proc/net/if_inet6") // without IPv6 there is none
	return string(b)
}
