//go:build !linux

package board

import "errors"

func openSerial(string, int) (SerialPort, error) {
	return nil, errors.New("serial ports are read on Linux only")
}
