// Package modbus has the driver of devices that speak Modbus, by TCP or by a serial line.
//
// The client is its own: of the libraries that the Go proxy has, github.com/simonvetter/modbus v1.6.4 and
// github.com/goburrow/modbus v0.1.0, neither takes a context, lets its caller bring an open port or connection,
// or drops what a serial line has received before a request, so that a late answer is taken for the next one.
// Both skip answers of other requests without a limit until their own timeout, and leave a write that was given
// up in the connection's buffer, from which it is sent when the link returns.
package modbus
