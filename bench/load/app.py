"""The App that is asked for jobs."""

from duly import App

jobs = App()
mail = jobs.queue("mail", owner="load@duly")
narrow = jobs.queue("narrow", max_depth=1_000)


@jobs.task(queue=mail)
async def send_receipt(order_id: int) -> None: ...


@jobs.task(queue=narrow)
async def report(order_id: int) -> None: ...
