package testbed

// Board returns the emulated board's I2C bus: parts that a beginner buys, and two whose
// outputs a careless scan would switch.
func Board() *Bus {
	thermometers := []*DS18B20{NewDS18B20([6]byte{1, 2, 3, 4, 5, 6}), NewDS18B20([6]byte{9, 8, 7, 6, 5, 4})}
	b := NewBus()
	b.Add("ds2482", 0x18, NewDS2482(thermometers...))
	b.AddBehind("ds18b20", thermometers[0])
	b.AddBehind("ds18b20-2", thermometers[1])
	b.Add("mcp9808", 0x1f, NewMCP9808())
	b.Add("pcf8574", 0x20, NewPCF8574())
	b.Add("bh1750", 0x23, NewBH1750())
	b.Add("ssd1306", 0x3c, NewSSD1306())
	b.Add("pca9685", 0x40, NewPCA9685())
	b.Add("tmp102", 0x48, NewTMP102())
	b.Add("ads1115", 0x49, NewADS1115())
	b.Add("mcp4725", 0x60, NewMCP4725())
	b.Add("bme280", 0x76, NewBME280())
	b.Add("max17043", 0x36, NewMAX17043()) // of a UPS, which is not connected at first
	b.SetState("max17043", Absent)
	return b
}
