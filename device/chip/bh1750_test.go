package chip

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// bh1750 is a chip that measures only when it is told to.
func bh1750(raw uint16) *registers {
	b := &registers{addr: 0x23}
	var result uint16
	b.answer = func(w, r []byte) bool {
		if len(w) == 1 && w[0] == bh1750Measure {
			result = raw
		}
		if len(r) == 2 {
			r[0], r[1], result = byte(result>>8), byte(result), 0
		}
		return true
	}
	return b
}

func TestBH1750(t *testing.T) {
	// "1000 0011 1001 0000" is 28067 lx: the datasheet's example
	measured(t, "bh1750", func() *registers { return bh1750(0x8390) }, map[string]float64{"illuminance": 33680 / 1.2})
	synctest.Test(t, func(t *testing.T) {
		wants(t, open(t, "bh1750", bh1750(1)), map[string]float64{"illuminance": 1 / 1.2})
		wants(t, open(t, "bh1750", bh1750(0xFFFE)), map[string]float64{"illuminance": 65534 / 1.2})
		lacks(t, open(t, "bh1750", bh1750(0xFFFF)), map[string]string{"illuminance": "brighter than"})
	})
	absent := bh1750(1)
	absent.addr = 0x5C
	refused(t, config(t, "bh1750", absent), device.Offline, "0x23")
}

// TestWaitEndsWithContext: a call does not wait for a conversion longer than its caller does.
func TestWaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, limit := range map[string]time.Duration{"bh1750": bh1750Longest / 2, "scd4x": scd4xStopped / 2} {
			address := map[string]uint16{"bh1750": 0x23, "scd4x": 0x62}[name]
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			begun := time.Now()
			dev, err := config(t, name, &registers{addr: address, answer: func([]byte, []byte) bool { return true }}).Open(ctx)
			if err == nil {
				_, err = dev.(device.Sensor).Sample(ctx)
			}
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != limit {
				t.Errorf("%s: %v after %v, want %v", name, err, time.Since(begun), limit)
			}
		}
	})
}
