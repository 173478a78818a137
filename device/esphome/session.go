package esphome

import (
	"errors"
	"time"

	"agentsite/device"
	"agentsite/device/lan"
)

const (
	setupTimeout = 8 * time.Second // from the dialling of a node to the end of its list
	sendTimeout  = 2 * time.Second // of an answer
	maxListed    = 1000            // messages until the end of a list

	// The messages and bytes that a node may send: so many at once, and so many each second.
	burst, rate           = 1200, 200
	burstBytes, rateBytes = 256 << 10, 32 << 10
)

var (
	errFlood = device.Faultf(device.Offline, "it sends more than %d messages a second; look at its update intervals",
		rate)
	errGoodbye  = errors.New("it ended the connection; it may be restarting")
	errPassword = device.Faultf(device.Denied, "it asks for a password of the old API; update it, and give it a key")
	errVersion  = device.Faultf(device.Offline, "it speaks another version of the API; update ESPHome on it")
)

// limiter bounds what a node sends.
type limiter struct{ messages, bytes lan.Bucket }

func newLimiter() limiter {
	return limiter{lan.Bucket{PerSecond: rate, Burst: burst}, lan.Bucket{PerSecond: rateBytes, Burst: burstBytes}}
}

// allows reports whether a message of size bytes is within the bounds.
func (l *limiter) allows(size int) bool { return l.messages.Take(1) && l.bytes.Take(size) }

// next returns the next message of a node that is not about the connection itself.
func (f *frames) next(limit *limiter) (message, error) {
	for {
		m, err := f.receive()
		if err != nil {
			return m, err
		}
		if !limit.allows(len(f.frame)) { // with its padding
			return m, errFlood
		}
		switch m.id {
		case pingRequest:
			if err := f.send(time.Now().Add(sendTimeout), message{id: pingResponse}); err != nil {
				return m, err
			}
		case disconnectRequest:
			f.send(time.Now().Add(sendTimeout), message{id: disconnectResponse})
			return m, errGoodbye
		default:
			return m, nil
		}
	}
}

// login greets a node and checks its MAC address; "" accepts any.
func (f *frames) login(limit *limiter, wantMAC string) error {
	err := f.send(time.Now().Add(sendTimeout), hello(), message{id: loginRequest}, message{id: deviceInfoRequest})
	if err != nil {
		return err
	}
	for range maxListed {
		m, err := f.next(limit)
		if err != nil {
			return err
		}
		var number uint64
		var text string
		ok := true
		switch m.id {
		case helloResponse, loginResponse:
			ok = eachField(m.body, func(f field) {
				if f.number == 1 {
					number = f.n
				}
			})
		case deviceInfoResponse:
			ok = eachField(m.body, func(f field) {
				if f.number == 3 {
					text = clip(f.bytes, 40)
				}
			})
		}
		switch {
		case !ok:
			return errNotAFrame
		case m.id == helloResponse && number != apiMajor:
			return errVersion
		case m.id == loginResponse && number != 0:
			return errPassword
		case m.id == deviceInfoResponse && wantMAC != "" && mac(text) != mac(wantMAC):
			return device.Faultf(device.Denied, "another node answers, with the MAC address %s instead of %s; "+
				"write mac: %[1]s if you replaced it", quote(text), wantMAC)
		case m.id == deviceInfoResponse:
			return nil
		}
	}
	return errNotAFrame
}

// list asks a node for its entities and calls yield for those that can be points.
func (f *frames) list(limit *limiter, yield func(e *entity)) error {
	if err := f.send(time.Now().Add(sendTimeout), message{id: listRequest}); err != nil {
		return err
	}
	for range maxListed {
		m, err := f.next(limit)
		if err != nil {
			return err
		}
		if m.id == listDone {
			return nil
		}
		if k := kindOf(func(k *kind) bool { return k.listed == m.id }); k != nil {
			e, ok := decodeEntity(k, m.body)
			if !ok {
				return errNotAFrame
			}
			yield(&e)
		}
	}
	return device.Faultf(device.Offline, "it has more than %d entities", maxListed)
}
