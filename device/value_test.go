package device

import "testing"

func TestTidy(t *testing.T) {
	for in, want := range map[float64]float64{-512 * 0.000598: -0.306176, 25080 * 0.001: 25.08, 100.653 * 1000: 100653, 0: 0, 1e300: 1e300, 123456789.6: 123456790, 1e-30: 1e-30} {
		if got := Tidy(in); got != want {
			t.Errorf("%v is tidied to %v, want %v", in, got, want)
		}
	}
}
