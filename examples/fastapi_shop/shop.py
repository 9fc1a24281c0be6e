"""A shop: the order and the receipt that it owes are stored in one transaction, and sent by a worker.

DATABASE_URL=postgresql+asyncpg://… DULY_URL=postgresql://… uvicorn shop:web
DATABASE_URL=postgresql+asyncpg://… DULY_URL=postgresql://… duly worker shop:jobs
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import NullPool

from duly import App, Job
from duly.fastapi import Accepted, mount


class Base(DeclarativeBase): ...


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    receipted: Mapped[bool] = mapped_column(default=False)


class UnknownItem(Exception): ...


engine = create_async_engine(os.environ["DATABASE_URL"], poolclass=NullPool)
sessions = async_sessionmaker(engine, expire_on_commit=False)

jobs = App()  # DULY_URL; nothing is opened at import
mail = jobs.queue("mail", owner="growth@shop")


@jobs.task(queue=mail, timeout="30s", permanent=(UnknownItem,))
async def send_receipt(job: Job, order_id: int) -> str:
    async with sessions.begin() as session:
        order = await session.get_one(Order, order_id)
        if order.item == "nothing":
            raise UnknownItem(order.item)
        order.receipted = True
        # The mark on the order and the end of the job are one commit: both or neither.
        await job.acomplete("sent", connection=session)
    return "sent"


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with jobs:  # optional: a wrong setting shows now, and connections are closed at the end
        yield


web = FastAPI(lifespan=lifespan)
mount(web, jobs)


@web.post("/orders", status_code=202, response_class=Accepted)
async def create(item: str) -> Accepted:
    async with sessions.begin() as session:
        order = Order(item=item)
        session.add(order)
        await session.flush()  # gives order.id
        receipt = await send_receipt.using(
            connection=session, idempotency_key=f"receipt:{order.id}"
        ).aenqueue(order_id=order.id)
        if item == "a change of mind":
            raise ValueError("the order and its receipt are gone together")
    return Accepted(receipt)
