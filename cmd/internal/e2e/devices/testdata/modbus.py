"""Serves the same units by Modbus TCP and on a serial port, with pymodbus 3.0.

modbus.py TCP-PORT SERIAL-PORT; says "ready" when both answer.
"""
import asyncio
import struct
import sys

from pymodbus.datastore import ModbusSequentialDataBlock, ModbusServerContext, ModbusSlaveContext
from pymodbus.framer.rtu_framer import ModbusRtuFramer
from pymodbus.server.async_io import ModbusSerialServer, ModbusTcpServer


def unit(inputs):
    block = ModbusSequentialDataBlock(0, [0] * 400)
    for address, number in inputs.items():
        block.setValues(address, list(struct.unpack(">HH", struct.pack(">f", number))))
    return ModbusSlaveContext(
        di=ModbusSequentialDataBlock(0, [0] * 16), co=ModbusSequentialDataBlock(0, [0] * 16),
        hr=ModbusSequentialDataBlock(0, [0] * 200), ir=block, zero_mode=True)


async def main():
    units = ModbusServerContext(single=False, slaves={
        1: unit({52: 1234.5, 72: 100.25, 74: 7.5, 342: 107.75}), 2: unit({}), 3: unit({10: 21.5})})
    tcp = ModbusTcpServer(units, address=("127.0.0.1", int(sys.argv[1])))
    serial = ModbusSerialServer(units, framer=ModbusRtuFramer, port=sys.argv[2], baudrate=19200, ignore_missing_slaves=True)
    await serial.start()
    tasks = [asyncio.create_task(tcp.serve_forever()), asyncio.create_task(serial.serve_forever())]
    await tcp.serving
    print("ready", flush=True)
    await asyncio.gather(*tasks)


asyncio.run(main())
