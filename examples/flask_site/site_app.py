"""A site on one machine: Flask, Flask-SQLAlchemy and jobs in one SQLite file.

SITE_DB=/srv/site/site.db gunicorn -w 3 site_app:web
SITE_DB=/srv/site/site.db duly worker site_app:jobs      (or: flask --app site_app duly worker)
"""

import os

from flask import Flask, current_app
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy.orm import Mapped, mapped_column

from duly import App
from duly.flask import init_app

URL = f"sqlite:///{os.environ['SITE_DB']}"

web = Flask(__name__)
web.config["SQLALCHEMY_DATABASE_URI"] = URL
db = SQLAlchemy(web)

# enqueue() joins the request's session: no commit, no job.
jobs = App(URL, connection=lambda: db.session)
init_app(web, jobs)


class Picture(db.Model):  # type: ignore[name-defined,misc] # Flask-SQLAlchemy makes this base at run time
    id: Mapped[int] = mapped_column(primary_key=True)
    path: Mapped[str]
    thumbnail: Mapped[str | None]


@jobs.task
def thumbnail(picture_id: int) -> str:
    picture = db.session.get_one(Picture, picture_id)
    picture.thumbnail = f"{picture.path}.small.jpg"
    db.session.commit()
    return f"{current_app.name}: {picture.thumbnail}"


@jobs.cron("0 3 * * *", tz="Europe/Berlin")
@jobs.task
def forget_orphans() -> int:
    found = db.session.query(Picture).filter(Picture.path == "").delete()
    db.session.commit()
    return found


@web.post("/upload/<path:path>")
def upload(path: str) -> tuple[dict[str, str], int]:
    picture = Picture(path=f"/{path}")
    db.session.add(picture)
    db.session.flush()
    job = thumbnail.enqueue(picture.id)
    if path.endswith(".exe"):
        db.session.rollback()
        return {"error": "that is no picture"}, 415
    db.session.commit()
    return {"job_id": str(job.id)}, 202


if __name__ == "__main__":
    jobs.run_worker(concurrency=4)  # the same as `duly worker site_app:jobs`
