package chip

import (
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Drivers returns the drivers of this room, for chips on b.
func Drivers(b *board.Board) []driver.Driver {
	return []driver.Driver{
		{Name: "ads1015", Doc: "voltages by an ADS1015 (12 bits) on I2C", Config: func() driver.Config { return newADS1x15(b, "ADS1015") }},
		{Name: "ads1115", Doc: "voltages by an ADS1115 (16 bits) on I2C", Config: func() driver.Config { return newADS1x15(b, "ADS1115") }},
		{Name: "bme280", Doc: "temperature, pressure and humidity by a BME280 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x76, 0x77), "BME280"} }},
		{Name: "bmp280", Doc: "temperature and pressure by a BMP280 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x76, 0x77), "BMP280"} }},
		{Name: "bmp180", Doc: "temperature and pressure by a BMP180 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x77), "BMP180"} }},
		{Name: "tmp102", Doc: "temperature by a TMP102 on I2C", Config: func() driver.Config { return &tmp102Config{b.I2C(0x48, 0x49, 0x4A, 0x4B)} }},
	}
}
