package beacon

import (
	"crypto/cipher"
	"crypto/subtle"
)

// The sizes of AES-CCM (RFC 3610) as BTHome uses it: a nonce of 13 bytes leaves 2 for the length, and the check value
// has 4 bytes. There is no additional data.
const (
	ccmNonce = 13
	ccmTag   = 4
)

// openCCM decrypts sealed, which ends with its check value, into dst, and reports whether it is genuine. dst has as
// many bytes as the message.
func openCCM(block cipher.Block, nonce *[ccmNonce]byte, dst, sealed []byte) bool {
	message, tag := sealed[:len(sealed)-ccmTag], sealed[len(sealed)-ccmTag:]
	var counter, key, mac [16]byte
	counter[0] = 1 // two bytes of length
	copy(counter[1:], nonce[:])
	block.Encrypt(key[:], counter[:])
	var want [ccmTag]byte
	for i := range want {
		want[i] = tag[i] ^ key[i]
	}
	for i := 0; i < len(message); i += 16 {
		counter[15]++ // a message has at most 254 bytes
		block.Encrypt(key[:], counter[:])
		for j := i; j < min(i+16, len(message)); j++ {
			dst[j] = message[j] ^ key[j-i]
		}
	}
	mac[0] = 1 | (ccmTag-2)/2<<3
	copy(mac[1:], nonce[:])
	mac[15] = byte(len(message))
	block.Encrypt(mac[:], mac[:])
	for i := 0; i < len(message); i += 16 {
		for j := i; j < min(i+16, len(message)); j++ {
			mac[j-i] ^= dst[j]
		}
		block.Encrypt(mac[:], mac[:])
	}
	return subtle.ConstantTimeCompare(mac[:ccmTag], want[:]) == 1
}
