package chip

import (
	"slices"

	"agentsite/device/board"
	"agentsite/device/driver"
)

// Drivers returns the drivers of this room, for chips on b.
func Drivers(b *board.Board) []driver.Driver {
	return []driver.Driver{
		{Name: "adxl345", Doc: "acceleration by an ADXL345 on I2C", Config: func() driver.Config { return &adxl345Config{b.I2C(0x53, 0x1D), 2} }},
		{Name: "apa102", Doc: "the colour of a strip of APA102 or SK9822 lamps on SPI", Config: func() driver.Config { return newStrip(b, apa102) }},
		{Name: "bme280", Doc: "temperature, pressure and humidity by a BME280 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x76, 0x77), "BME280"} }},
		{Name: "bmp280", Doc: "temperature and pressure by a BMP280 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x76, 0x77), "BMP280"} }},
		{Name: "bmp180", Doc: "temperature and pressure by a BMP180 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x77), "BMP180"} }},
		{Name: "camera", Doc: "pictures by a camera of the Raspberry Pi", Config: func() driver.Config { return &cameraConfig{Width: 1024, Height: 768} }},
		{Name: "gps", Doc: "position, speed and height by a GPS that speaks NMEA on a serial port", Config: func() driver.Config { return &gpsConfig{b.Serial(), 9600} }},
		{Name: "hd44780", Doc: "a display of characters, by an HD44780 behind a PCF8574 on I2C", Config: func() driver.Config {
			return &hd44780Config{I2C: b.I2C(append([]uint16{0x27, 0x3F}, slices.Concat(span(0x20, 0x26), span(0x38, 0x3E))...)...), Columns: 16, Rows: 2}
		}},
		{Name: "max7219", Doc: "digits of seven segments by a MAX7219 on SPI", Config: func() driver.Config { return &max7219Config{SPI: b.SPI(), Digits: 8, Brightness: 8} }},
		{Name: "mcp23008", Doc: "switches and states by an MCP23008 on I2C", Config: func() driver.Config { return newExpander(b, mcp23008) }},
		{Name: "mcp23017", Doc: "switches and states by an MCP23017 on I2C", Config: func() driver.Config { return newExpander(b, mcp23017) }},
		{Name: "mcp3008", Doc: "voltages by an MCP3008 on SPI", Config: func() driver.Config {
			return &mcp3008Config{SPI: b.SPI(), Channels: []int{0, 1, 2, 3, 4, 5, 6, 7}, Reference: 3.3}
		}},
		{Name: "mpu6050", Doc: "acceleration and rotation by an MPU6050 on I2C", Config: func() driver.Config { return newMPU(b, mpu6050) }},
		{Name: "mpu6500", Doc: "acceleration and rotation by an MPU6500 on I2C", Config: func() driver.Config { return newMPU(b, mpu6500) }},
		{Name: "mpu9250", Doc: "acceleration and rotation by an MPU9250 on I2C", Config: func() driver.Config { return newMPU(b, mpu9250) }},
		{Name: "neopixel", Doc: "the colour of a strip of WS2812B or SK6812 lamps on SPI", Config: func() driver.Config { return newStrip(b, neopixel) }},
		{Name: "pca9685", Doc: "servos and dimmed lamps by a PCA9685 on I2C", Config: func() driver.Config { return &pca9685Config{I2C: b.I2C(span(0x40, 0x77)...)} }},
		{Name: "pcf8574", Doc: "switches and states by a PCF8574 or PCF8574A on I2C", Config: func() driver.Config { return newPCF857x(b, "PCF8574") }},
		{Name: "pcf8575", Doc: "switches and states by a PCF8575 on I2C", Config: func() driver.Config { return newPCF857x(b, "PCF8575") }},
		{Name: "pms5003", Doc: "dust in the air by a PMS5003 on a serial port", Config: func() driver.Config { return &pms5003Config{b.Serial()} }},
		{Name: "ssd1306", Doc: "a display of 128 by 64 or 32 dots, by an SSD1306 on I2C", Config: func() driver.Config { return &ssd1306Config{I2C: b.I2C(0x3C, 0x3D), Height: 64} }},
		{Name: "tca9534", Doc: "switches and states by a TCA9534, PCA9534, PCA9554 or the like on I2C", Config: func() driver.Config { return newExpander(b, tca9534) }},
		{Name: "tca9535", Doc: "switches and states by a TCA9535, PCA9535, PCA9555 or the like on I2C", Config: func() driver.Config { return newExpander(b, tca9535) }},
	}
}
