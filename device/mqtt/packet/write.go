package packet

import (
	"encoding/binary"
	"math"
)

// Hello has the fields of CONNECT. It begins a new session.
type Hello struct {
	Client   string // its ID
	User     string
	Password string
	Seconds  uint16 // of silence, at most
	Longest  uint32 // packet that it takes; only MQTT 5 tells the server
	// Will is published by the server, and kept, when the client is gone without a Disconnect.
	Will, Says string
}

// AppendConnect appends the first packet of a client.
func AppendConnect(b []byte, version byte, h Hello) []byte {
	flags := byte(0x02) // a clean start
	if h.Will != "" {
		flags |= 0x04 | 1<<3 | 0x20 // QoS 1, kept
	}
	if h.User != "" {
		flags |= 0x80
	}
	if h.Password != "" {
		flags |= 0x40
	}
	body := appendText(nil, "MQTT")
	body = append(body, version, flags)
	body = binary.BigEndian.AppendUint16(body, h.Seconds)
	if version == V5 {
		body = append(body, 5, propMaxPacket)
		body = binary.BigEndian.AppendUint32(body, h.Longest)
	}
	body = appendText(body, h.Client)
	if h.Will != "" {
		body = appendNoProperties(body, version)
		body = appendText(appendText(body, h.Will), h.Says)
	}
	if h.User != "" {
		body = appendText(body, h.User)
	}
	if h.Password != "" {
		body = appendText(body, h.Password)
	}
	return appendPacket(b, byte(Connect)<<4, body, nil)
}

// Filter is a subscription at QoS 1.
type Filter struct {
	Topic string
	Kept  bool // whether the server sends what it has kept, too; MQTT 3.1.1 always does
}

// AppendSubscribe appends a packet that subscribes to filters. A kept message can be told from a new one by its
// flag, in MQTT 5 also where a new one is to be kept.
func AppendSubscribe(b []byte, version byte, id uint16, filters []Filter) []byte {
	body := appendNoProperties(binary.BigEndian.AppendUint16(nil, id), version)
	for _, f := range filters {
		options := byte(1)
		if version == V5 {
			options |= 1 << 3 // the flag as it was published
			if !f.Kept {
				options |= 2 << 4
			}
		}
		body = append(appendText(body, f.Topic), options)
	}
	return appendPacket(b, byte(Subscribe)<<4|0x02, body, nil)
}

// AppendPublish appends a message; an ID makes it one of QoS 1.
func AppendPublish(b []byte, version byte, id uint16, topic string, payload []byte, keep bool) []byte {
	first := byte(Publish) << 4
	body := appendText(nil, topic)
	if id != 0 {
		first |= 1 << 1
		body = binary.BigEndian.AppendUint16(body, id)
	}
	if keep {
		first |= 1
	}
	return appendPacket(b, first, appendNoProperties(body, version), payload)
}

// AppendPuback appends the answer to a message of QoS 1.
func AppendPuback(b []byte, id uint16) []byte {
	return binary.BigEndian.AppendUint16(append(b, byte(Puback)<<4, 2), id)
}

// AppendPing appends the question whether the server is there.
func AppendPing(b []byte) []byte { return append(b, byte(Pingreq)<<4, 0) }

// AppendDisconnect appends the end of a client that ends well: its Will is not published.
func AppendDisconnect(b []byte) []byte { return append(b, byte(Disconnect)<<4, 0) }

// appendPacket appends a packet with that first byte, whose rest is in two parts.
func appendPacket(b []byte, first byte, body, payload []byte) []byte {
	b = appendLength(append(b, first), len(body)+len(payload))
	return append(append(b, body...), payload...)
}

func appendLength(b []byte, n int) []byte {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func appendNoProperties(b []byte, version byte) []byte {
	if version == V5 {
		return append(b, 0)
	}
	return b
}

func appendText(b []byte, text string) []byte {
	text = text[:min(len(text), math.MaxUint16)]
	return append(binary.BigEndian.AppendUint16(b, uint16(len(text))), text...)
}

// AppendSubscribeAll appends a packet that subscribes to topics at QoS 0, with what the server has kept. Only a message
// that the server had kept before has the flag: one that came meanwhile is new, whether or not it is to be kept. A
// server of MQTT 5 does not send the client what it published itself.
func AppendSubscribeAll(b []byte, version byte, id uint16, topics []string) []byte {
	body := appendNoProperties(binary.BigEndian.AppendUint16(nil, id), version)
	options := byte(0)
	if version == V5 {
		options = 1 << 2
	}
	for _, topic := range topics {
		body = append(appendText(body, topic), options)
	}
	return appendPacket(b, byte(Subscribe)<<4|0x02, body, nil)
}

// AppendUnsubscribe appends the end of subscriptions.
func AppendUnsubscribe(b []byte, version byte, id uint16, topics []string) []byte {
	body := appendNoProperties(binary.BigEndian.AppendUint16(nil, id), version)
	for _, topic := range topics {
		body = appendText(body, topic)
	}
	return appendPacket(b, byte(Unsubscribe)<<4|0x02, body, nil)
}

// AppendCommand appends a message of QoS 1 that is not kept. A server of MQTT 5 forgets it after some seconds where it
// could not deliver it.
func AppendCommand(b []byte, version byte, id uint16, topic string, payload []byte, seconds uint32) []byte {
	body := binary.BigEndian.AppendUint16(appendText(nil, topic), id)
	if version == V5 {
		body = binary.BigEndian.AppendUint32(append(body, 5, propExpiry), seconds)
	}
	return appendPacket(b, byte(Publish)<<4|1<<1, body, payload)
}
