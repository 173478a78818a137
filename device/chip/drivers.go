package chip

import (
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Drivers returns the drivers of this room, for chips on b.
func Drivers(b *board.Board) []driver.Driver {
	return []driver.Driver{
		{Name: "bme280", Doc: "temperature, pressure and humidity by a BME280 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x76, 0x77), "BME280"} }},
		{Name: "bmp280", Doc: "temperature and pressure by a BMP280 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x76, 0x77), "BMP280"} }},
		{Name: "bmp180", Doc: "temperature and pressure by a BMP180 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x77), "BMP180"} }},
	}
}
