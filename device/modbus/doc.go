// Package modbus has the driver of devices that speak Modbus, by TCP or by a serial line.
//
// The client is its own: of the libraries that the Go proxy has, github.com/simonvetter/modbus v1.6.4 and
// github.com/goburrow/modbus v0.1.0, neither takes a context, and both keep the port or connection after a request
// that timed out. On a serial line its late answer is then taken for that of the next request. By TCP the first
// skips answers of other requests without a limit until its timeout, and the second stays one answer behind; a
// write that was given up is sent from the connection's buffer when the link returns.
package modbus
