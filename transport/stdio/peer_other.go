//go:build !linux

package stdio

import "net"

// checkPeer takes the socket's file permissions for the whole evidence.
func checkPeer(net.Conn) error { return nil }
