package esphome

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/esphome/esphometest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "QRTIErOb/fcE9Ukd/5qA3RGYMn0Y+p06U58SCtOXvPc="

func kitchen() *esphometest.Node {
	return esphometest.New(
		&esphometest.Entity{Kind: "sensor", Name: "Temperature", Unit: "°C", Number: 21.3},
		&esphometest.Entity{Kind: "binary_sensor", Name: "Door", On: true},
		&esphometest.Entity{Kind: "text_sensor", Name: "Mode", Text: "idle"},
		&esphometest.Entity{Kind: "switch", Name: "Heater"},
		&esphometest.Entity{Kind: "number", Name: "Target", Unit: "°C", Min: 5, Max: 30, Step: 0.1, Number: 5},
		&esphometest.Entity{Kind: "light", Name: "Lamp", Levels: true},
		&esphometest.Entity{Kind: "fan", Name: "Vent", Speeds: 4},
		&esphometest.Entity{Kind: "valve", Name: "Water", Levels: true},
		&esphometest.Entity{Kind: "cover", Name: "Blind"},
	)
}

func percent(min, max float64) driver.Quantity {
	return driver.Quantity{Unit: "%", Range: device.Range{Min: min, Max: max}}
}

func celsius(min, max float64) driver.Quantity {
	return driver.Quantity{Unit: "Cel", Range: device.Range{Min: min, Max: max}}
}

func kitchenConfig() *config {
	off, zero := device.Bool(false), device.Number(0)
	of := func(entity string) entityKey { return entityKey{Entity: entity} }
	return &config{
		Address: "kitchen.local", Fresh: usual,
		Inputs: map[string]input{
			"temperature": {of("sensor/temperature"), driver.InputPoint{Quantity: celsius(-40, 85)}},
			"door":        {of("binary_sensor/door"), driver.InputPoint{State: true}},
			"mode":        {of("text_sensor/mode"), driver.InputPoint{Values: []string{"idle", "heating"}}},
		},
		Outputs: map[string]output{
			"heater": {of("switch/heater"), driver.OutputPoint{Safe: off}},
			"target": {of("number/target"), driver.OutputPoint{Quantity: celsius(5, 30), Safe: device.Number(5)}},
			"lamp":   {of("light/lamp"), driver.OutputPoint{Quantity: percent(0, 100), Safe: zero}},
			"vent":   {of("fan/vent"), driver.OutputPoint{Quantity: percent(0, 100), Safe: zero}},
			"water":  {of("valve/water"), driver.OutputPoint{Quantity: percent(0, 100), Safe: zero}},
			"blind":  {of("cover/blind"), driver.OutputPoint{Safe: off}},
		},
	}
}

// keyFile writes a file with a key.
func keyFile(t *testing.T, key string) driver.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kitchen.key")
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return driver.File(path)
}

// bubble runs a test with a fake clock, and with a node that has a key.
func bubble(t *testing.T, test func(t *testing.T, n *esphometest.Node, c *config)) {
	t.Helper()
	file := keyFile(t, testKey)
	synctest.Test(t, func(t *testing.T) {
		n, c := kitchen(), kitchenConfig()
		n.Key, c.KeyFile = testKey, file
		var serving sync.WaitGroup
		c.dial = n.Dial(&serving)
		test(t, n, c)
		n.Drop()
		serving.Wait()
	})
}

// opened opens the device until the test ends.
func opened(t *testing.T, c *config) *node {
	t.Helper()
	dev, err := driver.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev.(*node)
}

// sampled returns the readings of a sample by point.
func sampled(t *testing.T, dev device.Sensor) map[string]device.Reading {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	all, err := dev.Sample(ctx)
	if err != nil {
		t.Fatal(err)
	}
	by := make(map[string]device.Reading)
	for _, r := range all {
		by[r.Point] = r
	}
	return by
}

// apply is Apply as the guard calls it.
func apply(dev device.Actuator, point string, v device.Value) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return dev.Apply(ctx, point, v)
}

func kindOfFault(err error) device.FaultKind {
	if err == nil {
		return ""
	}
	return device.AsFault(err).Kind
}
