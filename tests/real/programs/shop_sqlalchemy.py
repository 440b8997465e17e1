# mypy: ignore-errors
# ruff: noqa
"""SQLAlchemy: an ORM on a sqlite file, with defaults from the clock and from uuid."""

import datetime
import random
import uuid

from sqlalchemy import ForeignKey, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customer"
    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: str(uuid.uuid4()))
    name: Mapped[str]
    created: Mapped[datetime.datetime] = mapped_column(default=datetime.datetime.now)
    orders: Mapped[list["Order"]] = relationship(back_populates="customer", cascade="all, delete-orphan")


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    amount: Mapped[float]
    placed: Mapped[datetime.datetime] = mapped_column(server_default=func.now())
    customer_id: Mapped[str] = mapped_column(ForeignKey("customer.id"))
    customer: Mapped[Customer] = relationship(back_populates="orders")


engine = create_engine("sqlite:///shop.db")
Base.metadata.create_all(engine)
with Session(engine) as session:
    for name in ("Ada", "Blaise", "Charles"):
        orders = [Order(amount=round(random.uniform(1, 100), 2)) for _ in range(4)]
        session.add(Customer(name=name, orders=orders))
    session.commit()
with Session(engine) as session:
    rows = select(Customer.name, Customer.id, func.sum(Order.amount), func.max(Order.placed)).join(Order)
    for row in session.execute(rows.group_by(Customer.id).order_by(func.sum(Order.amount))):
        print(*row)
    print(session.scalar(select(func.random())), session.scalars(select(Customer.created)).all())
    session.delete(session.scalars(select(Customer).limit(1)).one())
    session.commit()
    print(session.scalar(select(func.count()).select_from(Order)), "orders left")
